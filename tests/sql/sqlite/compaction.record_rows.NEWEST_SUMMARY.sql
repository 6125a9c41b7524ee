SELECT summaries.summary
FROM summaries
WHERE summaries.tree_id = :tree_id
ORDER BY summaries.summary DESC
LIMIT 1 OFFSET :param_1
