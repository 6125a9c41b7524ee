SELECT sessions.id,
  sessions.title
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.title IS NOT NULL
ORDER BY sessions.id
