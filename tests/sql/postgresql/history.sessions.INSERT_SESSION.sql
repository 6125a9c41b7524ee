INSERT INTO sessions (
  tree_id,
  id,
  head_branch,
  head,
  last_rewind,
  created_at,
  updated_at,
  forked_from,
  forked_at,
  fold_case,
  title,
  project_root,
  metadata,
  revision,
  sealed
)
VALUES (
  %(tree_id)s::BIGINT,
  %(id)s::VARCHAR COLLATE "C",
  %(head_branch)s::BIGINT,
  %(head)s::BIGINT,
  %(last_rewind)s::BIGINT,
  %(created_at)s::BIGINT,
  %(updated_at)s::BIGINT,
  %(forked_from)s::VARCHAR COLLATE "C",
  %(forked_at)s::BIGINT,
  %(fold_case)s::INTEGER,
  %(title)s::VARCHAR,
  %(project_root)s::VARCHAR,
  %(metadata)s::VARCHAR,
  %(revision)s::VARCHAR,
  %(sealed)s
)
