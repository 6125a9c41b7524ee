SELECT message_facts.turn,
  message_facts.seq,
  coalesce(messages.created_at, messages.stored_at) AS coalesce_1,
  messages.role,
  messages.name,
  messages.status,
  messages.tool_call_id,
  messages.created_at,
  messages.message_id,
  messages.extra,
  messages.content_form,
  messages.content
FROM message_facts
JOIN messages ON messages.tree_id = %(tree_id)s::BIGINT
  AND messages.branch = %(branch)s::BIGINT
  AND messages.seq = message_facts.seq
WHERE message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = %(branch)s::BIGINT
  AND message_facts.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND message_facts.role = 'user'
ORDER BY message_facts.seq
