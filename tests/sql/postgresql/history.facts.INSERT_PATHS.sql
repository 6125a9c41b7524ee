INSERT INTO tool_result_paths (
  tree_id,
  branch,
  seq,
  path,
  start_line,
  end_line,
  contiguous,
  mentions
)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(seq)s::BIGINT,
  %(path)s::VARCHAR,
  %(start_line)s::BIGINT,
  %(end_line)s::BIGINT,
  %(contiguous)s::INTEGER,
  %(mentions)s::INTEGER
)
