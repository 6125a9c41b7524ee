DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = %(tree_id)s::BIGINT
  AND draft_pieces.draft = %(draft)s::BIGINT
  AND draft_pieces.piece >= %(first)s::BIGINT
