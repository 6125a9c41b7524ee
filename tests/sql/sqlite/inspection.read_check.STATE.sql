SELECT sessions.id,
  sessions.revision
FROM sessions
WHERE sessions.tree_id = :tree_id
ORDER BY sessions.id
