UPDATE tool_results
SET tool_name=:new_name,
  paths_complete=:complete
WHERE tool_results.tree_id = :tree
  AND tool_results.branch = :of
  AND tool_results.seq = :position
