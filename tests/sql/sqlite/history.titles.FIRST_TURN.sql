SELECT message_facts.seq
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
  AND message_facts.turn > 0
ORDER BY message_facts.seq
LIMIT 1 OFFSET :param_1
