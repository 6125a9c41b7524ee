SELECT count(*) AS count_1
FROM token_counts
WHERE token_counts.tree_id = %(tree_id)s::BIGINT
  AND token_counts.branch = %(branch)s::BIGINT
  AND token_counts.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
