DELETE FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = :branch
  AND tool_result_paths.seq > :kept
