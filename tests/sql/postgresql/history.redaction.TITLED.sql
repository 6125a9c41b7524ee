SELECT sessions.id,
  sessions.title
FROM sessions
WHERE sessions.tree_id = %(tree_id)s::BIGINT
  AND sessions.title IS NOT NULL
ORDER BY sessions.id
