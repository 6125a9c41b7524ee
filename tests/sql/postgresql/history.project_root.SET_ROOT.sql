UPDATE sessions
SET project_root=%(root)s::VARCHAR,
  revision=%(revision)s::VARCHAR
WHERE sessions.tree_id = %(tree)s::BIGINT
