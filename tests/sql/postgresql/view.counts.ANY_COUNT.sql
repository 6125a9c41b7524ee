SELECT token_counts.seq
FROM token_counts
WHERE token_counts.tree_id = %(tree_id)s::BIGINT
LIMIT 1
