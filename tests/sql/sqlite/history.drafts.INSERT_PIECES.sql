INSERT INTO draft_pieces (tree_id, draft, piece, at, "key", text, sealed)
VALUES (:tree_id, :draft, :piece, :at, :key, :text, :sealed)
