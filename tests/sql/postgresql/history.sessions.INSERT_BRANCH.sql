INSERT INTO branches (
  tree_id,
  branch,
  parent_branch,
  parent_position,
  records_seen,
  session_id,
  created_at,
  sealed
)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(parent_branch)s::BIGINT,
  %(parent_position)s::BIGINT,
  %(records_seen)s::BIGINT,
  %(session_id)s::VARCHAR COLLATE "C",
  %(created_at)s::BIGINT,
  %(sealed)s
)
