SELECT sessions.id,
  sessions.revision
FROM sessions
WHERE sessions.tree_id = %(tree_id)s::BIGINT
ORDER BY sessions.id
