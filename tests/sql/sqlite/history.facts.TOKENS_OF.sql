SELECT CAST(coalesce(sum(message_facts.tokens), 0) AS INTEGER) AS coalesce_1
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq = :seq
