SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
  AND branches.records_seen >= :number
LIMIT 1 OFFSET :param_1
