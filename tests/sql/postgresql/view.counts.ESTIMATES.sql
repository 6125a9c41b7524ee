SELECT COALESCE(
  CAST(
    json_object_agg(message_facts.seq, message_facts.tokens) AS text
  ),
  '{}'
) AS anon_1
FROM message_facts
WHERE message_facts.tree_id = %(tree_id)s::BIGINT
  AND message_facts.branch = %(branch)s::BIGINT
  AND message_facts.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
