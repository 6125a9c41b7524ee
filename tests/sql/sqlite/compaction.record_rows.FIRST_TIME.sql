SELECT coalesce(messages.created_at, messages.stored_at) AS coalesce_1
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
  AND (messages.role NOT IN ('system', 'developer'))
ORDER BY messages.seq
LIMIT 1 OFFSET :param_1
