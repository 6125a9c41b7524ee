SELECT tool_calls.arguments_form,
  tool_calls.arguments
FROM tool_calls
WHERE tool_calls.tree_id = %(tree_id)s::BIGINT
  AND tool_calls.branch = %(branch)s::BIGINT
  AND tool_calls.seq = %(seq)s::BIGINT
  AND tool_calls.position = %(position)s::BIGINT
