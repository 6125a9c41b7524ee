SELECT head_moves.from_branch,
  head_moves.from_position,
  head_moves.earlier_rewind
FROM head_moves
WHERE head_moves.tree_id = %(tree_id)s::BIGINT
  AND head_moves.session_id = %(session_id)s::VARCHAR COLLATE "C"
  AND head_moves.move = %(move)s::BIGINT
