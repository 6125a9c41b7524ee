SELECT message_facts.turn,
  message_facts.tokens_through
FROM message_facts
WHERE message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = %(branch)s::BIGINT
  AND message_facts.seq = %(seq)s::BIGINT
