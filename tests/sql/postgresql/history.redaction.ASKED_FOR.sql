SELECT tool_results.seq
FROM tool_results
WHERE tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = %(branch)s::BIGINT
  AND tool_results.seq > %(seq)s::BIGINT
  AND tool_results.call_seq = %(seq)s::BIGINT
ORDER BY tool_results.seq
