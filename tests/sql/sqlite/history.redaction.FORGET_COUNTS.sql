DELETE FROM token_counts
WHERE token_counts.tree_id = :tree
  AND token_counts.branch = :of
  AND token_counts.seq = :position
