UPDATE head_moves
SET source_record=:newest
WHERE head_moves.tree_id = :tree
  AND head_moves.source_record > :newest
