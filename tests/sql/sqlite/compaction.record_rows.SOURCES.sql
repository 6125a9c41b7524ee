SELECT messages.seq,
  messages.digest,
  coalesce(messages.created_at, messages.stored_at) AS at
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
ORDER BY messages.seq
