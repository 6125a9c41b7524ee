SELECT summaries.names
FROM summaries
WHERE summaries.tree_id = :tree_id
  AND summaries.summary = :number
