DELETE FROM head_moves
WHERE head_moves.tree_id = %(tree_id)s::BIGINT
  AND head_moves.session_id = %(session_id)s::VARCHAR COLLATE "C"
