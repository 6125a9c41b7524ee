INSERT INTO branches (
  tree_id,
  branch,
  parent_branch,
  parent_position,
  session_id,
  created_at,
  records_seen,
  sealed
)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(parent_branch)s::BIGINT,
  %(parent_position)s::BIGINT,
  %(session_id)s::VARCHAR COLLATE "C",
  %(created_at)s::BIGINT,
  %(records_seen)s::BIGINT,
  %(sealed)s
)
