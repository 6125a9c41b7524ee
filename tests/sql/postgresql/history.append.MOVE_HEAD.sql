UPDATE sessions
SET head=%(to)s::BIGINT,
  updated_at=%(now)s::BIGINT,
  revision=%(revision)s::VARCHAR
WHERE sessions.tree_id = %(tree)s::BIGINT
  AND sessions.id = %(session_id)s::VARCHAR COLLATE "C"
