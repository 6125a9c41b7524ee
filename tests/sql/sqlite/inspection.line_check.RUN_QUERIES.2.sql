SELECT tool_calls.tree_id,
  tool_calls.branch,
  tool_calls.seq,
  tool_calls.position,
  tool_calls.call_id,
  tool_calls.name,
  tool_calls.arguments_form,
  tool_calls.arguments,
  tool_calls.extra
FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq BETWEEN :first AND :last
ORDER BY tool_calls.tree_id,
  tool_calls.branch,
  tool_calls.seq,
  tool_calls.position
