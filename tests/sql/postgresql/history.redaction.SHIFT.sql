UPDATE message_facts
SET tokens_through=(message_facts.tokens_through + %(difference)s::BIGINT)
WHERE message_facts.tree_id = %(tree)s::BIGINT
  AND message_facts.branch = %(of)s::BIGINT
  AND message_facts.seq >= %(position)s::BIGINT
