UPDATE message_facts
SET role=%(new_role)s::VARCHAR,
  tokens=%(weight)s::BIGINT
WHERE message_facts.tree_id = %(tree)s::BIGINT
  AND message_facts.branch = %(of)s::BIGINT
  AND message_facts.seq = %(position)s::BIGINT
