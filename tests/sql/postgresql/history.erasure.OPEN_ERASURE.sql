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
  %(tree_id)s::BIGINT,
  %(erasure)s::BIGINT,
  %(branch)s::BIGINT,
  %(session_id)s::VARCHAR COLLATE "C",
  %(kept)s::BIGINT,
  %(messages)s::BIGINT,
  %(kept_messages)s::BIGINT,
  %(started_at)s::BIGINT,
  %(newest_copy)s::BIGINT,
  %(sealed)s
)
