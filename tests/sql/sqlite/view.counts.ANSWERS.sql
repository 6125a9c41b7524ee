SELECT tool_results.call_seq,
  tool_results.call_position
FROM tool_results
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq BETWEEN :first AND :last
