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
  :tree_id,
  :branch,
  :seq,
  :path,
  :start_line,
  :end_line,
  :contiguous,
  :mentions
)
