UPDATE sessions
SET revision=%(revision)s::VARCHAR,
  archived=%(archived)s::INTEGER
WHERE sessions.tree_id = %(tree)s::BIGINT
  AND sessions.id = %(session_id)s::VARCHAR COLLATE "C"
