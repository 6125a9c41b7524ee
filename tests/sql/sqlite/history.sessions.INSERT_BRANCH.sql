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
  :tree_id,
  :branch,
  :parent_branch,
  :parent_position,
  :session_id,
  :created_at,
  :records_seen,
  :sealed
)
