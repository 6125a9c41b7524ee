SELECT tool_result_paths.tree_id,
  tool_result_paths.branch,
  tool_result_paths.seq,
  tool_result_paths.path,
  tool_result_paths.start_line,
  tool_result_paths.end_line,
  tool_result_paths.contiguous,
  tool_result_paths.mentions
FROM tool_result_paths
WHERE tool_result_paths.tree_id = %(tree_id)s::BIGINT
  AND tool_result_paths.branch = %(branch)s::BIGINT
  AND tool_result_paths.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
ORDER BY tool_result_paths.tree_id,
  tool_result_paths.branch,
  tool_result_paths.seq,
  tool_result_paths.path
