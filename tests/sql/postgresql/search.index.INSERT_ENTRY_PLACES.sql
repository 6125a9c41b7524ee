INSERT INTO search_rows (tree_id, branch, seq, summary, number)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(seq)s::BIGINT,
  %(summary)s::BIGINT,
  %(number)s::BIGINT
)
