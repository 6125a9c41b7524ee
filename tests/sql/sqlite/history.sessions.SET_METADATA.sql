UPDATE sessions
SET metadata=:metadata,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
