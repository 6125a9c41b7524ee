SELECT count(*) AS count_1
FROM token_counts
WHERE token_counts.tree_id = :tree_id
  AND token_counts.branch = :branch
  AND token_counts.seq BETWEEN :first AND :last
