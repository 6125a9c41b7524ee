INSERT INTO message_facts (tree_id, branch, seq, role, turn, tokens, tokens_through)
VALUES (
  %(tree_id)s::BIGINT,
  %(branch)s::BIGINT,
  %(seq)s::BIGINT,
  %(role)s::VARCHAR,
  %(turn)s::BIGINT,
  %(tokens)s::BIGINT,
  %(tokens_through)s::BIGINT
)
