UPDATE message_facts
SET role=:new_role,
  tokens=:weight
WHERE message_facts.tree_id = :tree
  AND message_facts.branch = :of
  AND message_facts.seq = :position
