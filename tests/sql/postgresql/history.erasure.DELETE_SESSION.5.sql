DELETE FROM sessions
WHERE sessions.tree_id = %(tree_id)s::BIGINT
  AND sessions.id = %(session_id)s::VARCHAR COLLATE "C"
