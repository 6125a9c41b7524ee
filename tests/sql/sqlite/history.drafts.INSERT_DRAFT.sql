INSERT INTO drafts (
  tree_id,
  draft,
  session_id,
  branch,
  head,
  at,
  message,
  sealed
)
VALUES (
  :tree_id,
  :draft,
  :session_id,
  :branch,
  :head,
  :at,
  :message,
  :sealed
)
