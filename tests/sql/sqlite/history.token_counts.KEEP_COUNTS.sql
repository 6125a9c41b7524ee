INSERT INTO token_counts (tree_id, branch, seq, encoding, tokens)
VALUES (:tree_id, :branch, :seq, :encoding, :tokens)
