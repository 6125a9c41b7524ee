INSERT INTO erasures (
  tree_id,
  erasure,
  branch,
  session_id,
  kept,
  messages,
  kept_messages,
  started_at,
  newest_copy,
  sealed
)
VALUES (
  :tree_id,
  :erasure,
  :branch,
  :session_id,
  :kept,
  :messages,
  :kept_messages,
  :started_at,
  :newest_copy,
  :sealed
)
