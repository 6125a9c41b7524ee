SELECT tool_results.seq
FROM tool_results
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq > :seq
  AND tool_results.call_seq = :seq
ORDER BY tool_results.seq
