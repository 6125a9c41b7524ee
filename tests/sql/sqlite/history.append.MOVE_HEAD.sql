UPDATE sessions
SET head=:to,
  updated_at=:now,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
