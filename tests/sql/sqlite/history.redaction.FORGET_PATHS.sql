DELETE FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree
  AND tool_result_paths.branch = :of
  AND tool_result_paths.seq = :position
