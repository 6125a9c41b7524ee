SELECT summaries.title,
  summaries.body
FROM summaries
WHERE summaries.tree_id = %(tree_id)s::BIGINT
  AND summaries.summary = %(summary)s::BIGINT
