SELECT tool_calls.seq,
  tool_calls.position,
  tool_calls.name,
  coalesce(tool_kinds.kind, 'other') AS coalesce_1,
  tool_calls.arguments_form,
  tool_calls.arguments
FROM tool_calls
LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_calls.name
WHERE tool_calls.tree_id = %(tree_id)s::BIGINT
  AND tool_calls.branch = %(branch)s::BIGINT
  AND tool_calls.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND (
    (tool_calls.seq, tool_calls.position) NOT IN (
      SELECT tool_results.call_seq,
        tool_results.call_position
      FROM tool_results
      WHERE tool_results.tree_id = %(tree_id)s::BIGINT
        AND tool_results.branch = %(branch)s::BIGINT
        AND tool_results.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
        AND tool_results.call_seq IS NOT NULL
    )
  )
ORDER BY tool_calls.seq,
  tool_calls.position
