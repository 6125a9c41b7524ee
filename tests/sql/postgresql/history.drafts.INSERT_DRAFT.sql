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
  %(tree_id)s::BIGINT,
  %(draft)s::BIGINT,
  %(session_id)s::VARCHAR COLLATE "C",
  %(branch)s::BIGINT,
  %(head)s::BIGINT,
  %(at)s::BIGINT,
  %(message)s::VARCHAR,
  %(wire_format)s::VARCHAR,
  %(sealed)s
)
