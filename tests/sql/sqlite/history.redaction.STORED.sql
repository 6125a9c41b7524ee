SELECT messages.stored_at,
  messages.wire_format
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq = :seq
