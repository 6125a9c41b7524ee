SELECT branches.branch
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
  AND branches.records_seen >= %(number)s::BIGINT
LIMIT 1
