SELECT tool_results.seq,
  tool_results.call_seq,
  tool_results.call_position,
  tool_results.paths_complete
FROM tool_results
WHERE tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = %(branch)s::BIGINT
  AND tool_results.call_seq IS NOT NULL
ORDER BY tool_results.seq
