SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch DESC
LIMIT 1 OFFSET :param_1
