SELECT messages.branch,
  messages.seq,
  messages.digest,
  messages.stored_at
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.message_id = :message_id
