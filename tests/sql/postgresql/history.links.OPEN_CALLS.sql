SELECT tool_calls.seq,
  tool_calls.position,
  tool_calls.name,
  tool_calls.arguments_form,
  tool_calls.arguments,
  tool_calls.call_id
FROM tool_calls
JOIN message_facts ON message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = tool_calls.branch
  AND message_facts.seq = tool_calls.seq
WHERE tool_calls.tree_id = %(tree_id)s::BIGINT
  AND tool_calls.branch = %(branch)s::BIGINT
  AND tool_calls.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND (
    tool_calls.call_id IS NOT NULL
    OR tool_calls.name IS NOT NULL
    OR substr(coalesce(tool_calls.extra, '{'), 1, 2) IN ('{', '{"', '{}', '=e')
  )
  AND message_facts.role = 'assistant'
  AND coalesce(tool_calls.call_id, '') IN (%(call_id)s, %(neutral_id)s)
ORDER BY tool_calls.seq DESC,
  tool_calls.position
