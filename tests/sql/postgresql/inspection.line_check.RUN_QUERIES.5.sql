SELECT message_facts.tree_id,
  message_facts.branch,
  message_facts.seq,
  message_facts.role,
  message_facts.turn,
  message_facts.tokens,
  message_facts.tokens_through
FROM message_facts
WHERE message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = %(branch)s::BIGINT
  AND message_facts.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
ORDER BY message_facts.tree_id,
  message_facts.branch,
  message_facts.seq
