SELECT coalesce(messages.created_at, messages.stored_at) AS coalesce_1
FROM messages
WHERE messages.tree_id = %(tree_id)s::BIGINT
  AND messages.branch = %(branch)s::BIGINT
  AND messages.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND (messages.role NOT IN ('system', 'developer'))
ORDER BY messages.seq
LIMIT 1
