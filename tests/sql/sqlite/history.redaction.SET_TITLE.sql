UPDATE sessions
SET title=:title,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
