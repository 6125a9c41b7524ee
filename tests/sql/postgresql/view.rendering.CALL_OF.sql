SELECT tool_results.call_seq,
  tool_results.call_position,
  tool_results.tool_name
FROM tool_results
WHERE tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = %(branch)s::BIGINT
  AND tool_results.seq = %(seq)s::BIGINT
