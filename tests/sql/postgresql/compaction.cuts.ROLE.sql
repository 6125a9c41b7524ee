SELECT message_facts.role
FROM message_facts
WHERE message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = %(branch)s::BIGINT
  AND message_facts.seq = %(seq)s::BIGINT
