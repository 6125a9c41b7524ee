SELECT coalesce(max(head_moves.move), :coalesce_1) + :coalesce_2 AS anon_1
FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.session_id = :session_id
