UPDATE head_moves
SET source_record=%(newest)s::BIGINT
WHERE head_moves.tree_id = %(tree)s::BIGINT
  AND head_moves.source_record > %(newest)s::BIGINT
