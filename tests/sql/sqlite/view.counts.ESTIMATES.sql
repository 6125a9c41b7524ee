SELECT json_group_object(message_facts.seq, message_facts.tokens) AS anon_1
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
