DELETE FROM token_counts
WHERE token_counts.tree_id = %(tree)s::BIGINT
  AND token_counts.branch = %(of)s::BIGINT
  AND token_counts.seq = %(position)s::BIGINT
