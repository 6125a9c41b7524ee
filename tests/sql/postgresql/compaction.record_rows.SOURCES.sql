SELECT messages.seq,
  messages.digest,
  coalesce(messages.created_at, messages.stored_at) AS at
FROM messages
WHERE messages.tree_id = %(tree_id)s::BIGINT
  AND messages.branch = %(branch)s::BIGINT
  AND messages.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
ORDER BY messages.seq
