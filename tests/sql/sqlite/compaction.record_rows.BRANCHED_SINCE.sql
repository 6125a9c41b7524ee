SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
  AND branches.records_seen >= :number
UNION ALL
SELECT head_moves.to_branch
FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.source_record >= :number
LIMIT 1 OFFSET :param_1
