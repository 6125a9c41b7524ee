INSERT INTO head_moves (
  tree_id,
  session_id,
  move,
  kind,
  from_branch,
  from_position,
  to_branch,
  to_position,
  moved_at,
  earlier_rewind,
  source_move,
  source_record,
  sealed
)
VALUES (
  %(tree_id)s::BIGINT,
  %(session_id)s::VARCHAR COLLATE "C",
  %(move)s::BIGINT,
  %(kind)s::VARCHAR,
  %(from_branch)s::BIGINT,
  %(from_position)s::BIGINT,
  %(to_branch)s::BIGINT,
  %(to_position)s::BIGINT,
  %(moved_at)s::BIGINT,
  %(earlier_rewind)s::BIGINT,
  %(source_move)s::BIGINT,
  %(source_record)s::BIGINT,
  %(sealed)s
)
