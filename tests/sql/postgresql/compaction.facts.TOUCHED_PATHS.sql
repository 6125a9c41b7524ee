SELECT tool_result_paths.path,
  tool_results.tool_name,
  coalesce(tool_kinds.kind, 'other') AS coalesce_1
FROM tool_results
JOIN tool_result_paths ON tool_result_paths.tree_id = %(tree_id)s::BIGINT
  AND tool_result_paths.branch = tool_results.branch
  AND tool_result_paths.seq = tool_results.seq
LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
WHERE tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = %(branch)s::BIGINT
  AND tool_results.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
ORDER BY tool_result_paths.seq,
  tool_result_paths.path
