DELETE FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq > :kept
