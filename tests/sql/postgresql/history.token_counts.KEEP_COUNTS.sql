INSERT INTO token_counts (tree_id, branch, seq, encoding, tokens, sealed)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(seq)s::BIGINT,
  %(encoding)s::VARCHAR,
  %(tokens)s::BIGINT,
  %(sealed)s
)
