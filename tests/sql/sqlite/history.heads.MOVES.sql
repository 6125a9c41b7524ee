SELECT head_moves.move,
  head_moves.kind,
  head_moves.from_position,
  head_moves.to_position,
  head_moves.moved_at,
  head_moves.from_branch,
  head_moves.to_branch
FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.session_id = :session_id
ORDER BY head_moves.move
