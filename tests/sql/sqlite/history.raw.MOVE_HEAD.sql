UPDATE sessions
SET head=:to,
  updated_at=:now
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
