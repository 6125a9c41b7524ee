SELECT branches.branch
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
ORDER BY branches.branch
LIMIT 1
FOR NO KEY UPDATE
