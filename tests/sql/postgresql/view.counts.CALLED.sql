SELECT count(*) AS count_1
FROM tool_calls
JOIN message_facts ON message_facts.tree_id = tool_calls.tree_id
  AND message_facts.branch = tool_calls.branch
  AND message_facts.seq = tool_calls.seq
WHERE tool_calls.tree_id = %(tree_id)s::BIGINT
  AND tool_calls.branch = %(branch)s::BIGINT
  AND tool_calls.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND message_facts.role = 'assistant'
  AND (
    tool_calls.call_id IS NOT NULL
    OR tool_calls.name IS NOT NULL
    OR substr(coalesce(tool_calls.extra, '{'), 1, 2) IN ('{', '{"', '{}', '=e')
  )
