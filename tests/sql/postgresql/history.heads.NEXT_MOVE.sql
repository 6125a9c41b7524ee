SELECT coalesce(max(head_moves.move), %(coalesce_1)s::INTEGER) + %(coalesce_2)s::BIGINT AS anon_1
FROM head_moves
WHERE head_moves.tree_id = %(tree_id)s::BIGINT
  AND head_moves.session_id = %(session_id)s::VARCHAR COLLATE "C"
