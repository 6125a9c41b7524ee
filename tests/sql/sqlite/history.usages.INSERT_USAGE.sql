INSERT INTO usages (
  tree_id,
  branch,
  seq,
  usage,
  input,
  output,
  cached,
  at,
  sealed
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :usage,
  :input,
  :output,
  :cached,
  :at,
  :sealed
)
