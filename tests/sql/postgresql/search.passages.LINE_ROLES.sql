SELECT message_facts.seq,
  message_facts.role
FROM message_facts
WHERE message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = %(branch)s::BIGINT
  AND message_facts.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
ORDER BY message_facts.seq
