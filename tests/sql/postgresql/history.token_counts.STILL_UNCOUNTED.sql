SELECT messages.seq
FROM messages
LEFT OUTER JOIN token_counts ON token_counts.tree_id = %(tree_id)s::BIGINT
  AND token_counts.branch = messages.branch
  AND token_counts.seq = messages.seq
  AND token_counts.encoding = %(encoding)s::VARCHAR
WHERE messages.tree_id = %(tree_id)s::BIGINT
  AND messages.branch = %(branch)s::BIGINT
  AND messages.seq = %(seq)s::BIGINT
  AND token_counts.tokens IS NULL
