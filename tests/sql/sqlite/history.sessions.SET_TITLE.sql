UPDATE sessions
SET updated_at=:updated_at,
  title=:title,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
