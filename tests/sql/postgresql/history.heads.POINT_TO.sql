UPDATE sessions
SET head_branch=%(branch)s::BIGINT,
  head=%(to)s::BIGINT,
  last_rewind=%(rewind)s::BIGINT,
  updated_at=%(now)s::BIGINT,
  revision=%(revision)s::VARCHAR
WHERE sessions.tree_id = %(tree)s::BIGINT
  AND sessions.id = %(session_id)s::VARCHAR COLLATE "C"
