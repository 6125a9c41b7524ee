SELECT summaries.names
FROM summaries
WHERE summaries.tree_id = %(tree_id)s::BIGINT
  AND summaries.summary = %(number)s::BIGINT
