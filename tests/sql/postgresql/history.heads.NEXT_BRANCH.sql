SELECT max(branches.branch) + %(max_1)s::BIGINT AS anon_1
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
