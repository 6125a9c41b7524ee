INSERT INTO notes (
  tree_id,
  branch,
  seq,
  note,
  key,
  session_id,
  owner,
  at,
  value,
  sealed
)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(seq)s::BIGINT,
  %(note)s::BIGINT,
  %(key)s::VARCHAR COLLATE "C",
  %(session_id)s::VARCHAR COLLATE "C",
  %(owner)s::VARCHAR COLLATE "C",
  %(at)s::BIGINT,
  %(value)s::VARCHAR,
  %(sealed)s
)
