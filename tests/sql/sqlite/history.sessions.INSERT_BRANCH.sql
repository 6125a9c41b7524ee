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
  :tree_id,
  :branch,
  :parent_branch,
  :parent_position,
  :records_seen,
  :session_id,
  :created_at,
  :sealed
)
