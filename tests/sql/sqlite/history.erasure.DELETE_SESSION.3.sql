DELETE FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.session_id = :session_id
