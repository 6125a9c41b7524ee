SELECT max(branches.branch) + :max_1 AS anon_1
FROM branches
WHERE branches.tree_id = :tree_id
