UPDATE sessions
SET title=%(title)s::VARCHAR,
  revision=%(revision)s::VARCHAR
WHERE sessions.tree_id = %(tree)s::BIGINT
  AND sessions.id = %(session_id)s::VARCHAR COLLATE "C"
