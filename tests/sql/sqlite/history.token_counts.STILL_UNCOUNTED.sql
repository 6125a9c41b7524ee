SELECT messages.seq
FROM messages
LEFT OUTER JOIN token_counts ON token_counts.tree_id = :tree_id
  AND token_counts.branch = messages.branch
  AND token_counts.seq = messages.seq
  AND token_counts.encoding = :encoding
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq = :seq
  AND token_counts.tokens IS NULL
