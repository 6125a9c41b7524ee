DELETE FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id
