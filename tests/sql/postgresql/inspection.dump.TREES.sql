SELECT branches.tree_id
FROM branches
UNION
SELECT erasures.tree_id
FROM erasures
ORDER BY tree_id
