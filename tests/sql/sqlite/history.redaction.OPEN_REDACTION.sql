INSERT INTO redactions (
  tree_id,
  branch,
  seq,
  session_id,
  reason,
  redacted_by,
  redacted_at,
  summaries,
  newest_copy,
  sealed
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :session_id,
  :reason,
  :redacted_by,
  :redacted_at,
  :summaries,
  :newest_copy,
  :sealed
)
