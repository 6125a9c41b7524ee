UPDATE message_facts
SET tokens=%(weight)s::BIGINT
WHERE message_facts.tree_id = %(tree)s::BIGINT
  AND message_facts.branch = %(of)s::BIGINT
  AND message_facts.seq = %(position)s::BIGINT
