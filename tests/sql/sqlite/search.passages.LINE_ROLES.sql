SELECT message_facts.seq,
  message_facts.role
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
ORDER BY message_facts.seq
