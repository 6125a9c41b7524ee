SELECT tool_calls.arguments_form,
  tool_calls.arguments
FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq = :seq
  AND tool_calls.position = :position
