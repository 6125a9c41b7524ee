SELECT tool_results.call_seq,
  tool_results.call_position
FROM tool_results
WHERE tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = %(branch)s::BIGINT
  AND tool_results.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
