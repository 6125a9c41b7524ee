SELECT sessions.tree_id,
  sessions.id,
  sessions.metadata
FROM sessions
WHERE sessions.tree_id = :tree_id
