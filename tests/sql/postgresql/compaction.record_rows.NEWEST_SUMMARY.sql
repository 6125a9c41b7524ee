SELECT summaries.summary
FROM summaries
WHERE summaries.tree_id = %(tree_id)s::BIGINT
ORDER BY summaries.summary DESC
LIMIT 1
