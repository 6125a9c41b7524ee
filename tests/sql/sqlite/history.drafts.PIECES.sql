SELECT draft_pieces.at,
  draft_pieces."key",
  draft_pieces.text
FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft = :draft
ORDER BY draft_pieces.piece
