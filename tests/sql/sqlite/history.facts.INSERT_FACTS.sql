INSERT INTO message_facts (tree_id, branch, seq, role, turn, tokens, tokens_through)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :role,
  :turn,
  :tokens,
  :tokens_through
)
