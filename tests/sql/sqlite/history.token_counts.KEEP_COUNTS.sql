INSERT INTO token_counts (tree_id, branch, seq, encoding, tokens, sealed)
VALUES (:tree_id, :branch, :seq, :encoding, :tokens, :sealed)
