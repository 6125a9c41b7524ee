INSERT INTO drafts (
  tree_id,
  draft,
  session_id,
  branch,
  head,
  at,
  message,
  wire_format,
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
  :wire_format,
  :sealed
)
