SELECT branches.branch
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
ORDER BY branches.branch DESC
LIMIT 1
