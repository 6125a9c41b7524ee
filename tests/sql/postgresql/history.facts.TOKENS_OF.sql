SELECT CAST(coalesce(sum(message_facts.tokens), 0) AS BIGINT) AS coalesce_1
FROM message_facts
WHERE message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = %(branch)s::BIGINT
  AND message_facts.seq = %(seq)s::BIGINT
