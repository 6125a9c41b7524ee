SELECT branches.branch
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
  AND branches.records_seen >= %(number)s::BIGINT
UNION ALL
SELECT head_moves.to_branch
FROM head_moves
WHERE head_moves.tree_id = %(tree_id)s::BIGINT
  AND head_moves.source_record >= %(number)s::BIGINT
LIMIT 1
