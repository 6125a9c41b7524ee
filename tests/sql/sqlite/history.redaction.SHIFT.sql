UPDATE message_facts
SET tokens_through=(message_facts.tokens_through + :difference)
WHERE message_facts.tree_id = :tree
  AND message_facts.branch = :of
  AND message_facts.seq >= :position
