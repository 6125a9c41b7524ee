SELECT draft_pieces.at,
  draft_pieces.key,
  draft_pieces.text
FROM draft_pieces
WHERE draft_pieces.tree_id = %(tree_id)s::BIGINT
  AND draft_pieces.draft = %(draft)s::BIGINT
ORDER BY draft_pieces.piece
