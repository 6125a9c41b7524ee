DELETE FROM tool_result_paths
WHERE tool_result_paths.tree_id = %(tree)s::BIGINT
  AND tool_result_paths.branch = %(of)s::BIGINT
  AND tool_result_paths.seq = %(position)s::BIGINT
