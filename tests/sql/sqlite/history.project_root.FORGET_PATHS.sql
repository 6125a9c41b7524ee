DELETE FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree_id
