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
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(seq)s::BIGINT,
  %(session_id)s::VARCHAR COLLATE "C",
  %(reason)s::VARCHAR,
  %(redacted_by)s::VARCHAR,
  %(redacted_at)s::BIGINT,
  %(summaries)s::VARCHAR,
  %(newest_copy)s::BIGINT,
  %(sealed)s
)
