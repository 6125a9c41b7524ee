SELECT head_moves.move,
  head_moves.kind,
  head_moves.from_position,
  head_moves.to_position,
  head_moves.moved_at,
  head_moves.from_branch,
  head_moves.to_branch
FROM head_moves
WHERE head_moves.tree_id = %(tree_id)s::BIGINT
  AND head_moves.session_id = %(session_id)s::VARCHAR COLLATE "C"
ORDER BY head_moves.move
