SELECT token_counts.seq,
  token_counts.tokens,
  token_counts.encoding
FROM token_counts
WHERE token_counts.tree_id = :tree_id
  AND token_counts.branch = :branch
  AND token_counts.seq BETWEEN :first AND :last
