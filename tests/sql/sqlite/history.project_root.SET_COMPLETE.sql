UPDATE tool_results
SET paths_complete=:complete
WHERE tool_results.tree_id = :tree
  AND tool_results.branch = :of
  AND tool_results.seq = :place
