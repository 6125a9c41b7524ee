INSERT INTO usages (
  tree_id,
  branch,
  seq,
  usage,
  input,
  output,
  cached,
  at,
  sealed
)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(seq)s::BIGINT,
  %(usage)s::BIGINT,
  %(input)s::BIGINT,
  %(output)s::BIGINT,
  %(cached)s::BIGINT,
  %(at)s::BIGINT,
  %(sealed)s
)
