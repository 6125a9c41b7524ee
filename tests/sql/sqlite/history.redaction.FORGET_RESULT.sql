DELETE FROM tool_results
WHERE tool_results.tree_id = :tree
  AND tool_results.branch = :of
  AND tool_results.seq = :position
