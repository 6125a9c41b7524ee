SELECT message_facts.seq
FROM message_facts
WHERE message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = %(branch)s::BIGINT
  AND message_facts.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND message_facts.turn > 0
ORDER BY message_facts.seq
LIMIT 1
