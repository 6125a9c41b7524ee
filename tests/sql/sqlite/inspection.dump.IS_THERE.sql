SELECT branches.tree_id
FROM branches
WHERE branches.tree_id = :tree_id
UNION
SELECT erasures.tree_id
FROM erasures
WHERE erasures.tree_id = :tree_id
