DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft = :draft
