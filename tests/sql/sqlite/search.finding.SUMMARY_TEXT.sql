SELECT summaries.title,
  summaries.body
FROM summaries
WHERE summaries.tree_id = :tree_id
  AND summaries.summary = :summary
