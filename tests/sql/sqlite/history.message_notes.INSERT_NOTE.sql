INSERT INTO notes (
  tree_id,
  branch,
  seq,
  note,
  "key",
  session_id,
  owner,
  at,
  value,
  sealed
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :note,
  :key,
  :session_id,
  :owner,
  :at,
  :value,
  :sealed
)
