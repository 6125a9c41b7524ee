INSERT INTO head_moves (
  tree_id,
  session_id,
  move,
  kind,
  from_branch,
  from_position,
  to_branch,
  to_position,
  earlier_rewind,
  moved_at,
  sealed
)
VALUES (
  :tree_id,
  :session_id,
  :move,
  :kind,
  :from_branch,
  :from_position,
  :to_branch,
  :to_position,
  :earlier_rewind,
  :moved_at,
  :sealed
)
