UPDATE sessions
SET metadata=:metadata
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
