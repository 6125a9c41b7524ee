-- The ancestors of a branch on a server: the branches that its line runs through before its own,
-- and what they give to it. Rows are written once, with the branch, from those of its parent.
--
-- A row of level 0 is one ancestor. When the parent has {fanout} of them, they become one row of
-- level 1 that names the parent, whose rows of level 0 are these ancestors; and {fanout} rows of
-- level 1 become one of level 2 likewise. So a branch has few rows however deep it is, and three
-- joins find all of its ancestors.
--
-- Values: whole numbers.

-- part: derived
WITH added AS (
    SELECT b.tree_id, b.branch, b.parent_branch, p.parent_position + 1 AS first,
        b.parent_position AS last, CASE
            WHEN COUNT(a.level) FILTER (WHERE a.level = 0) < {fanout} THEN 0
            WHEN COUNT(a.level) FILTER (WHERE a.level = 1) < {fanout} THEN 1
            ELSE 2
        END AS carry
    FROM branches AS b
    JOIN branches AS p ON p.tree_id = b.tree_id AND p.branch = b.parent_branch{parents}
    LEFT JOIN ancestors AS a
        ON a.tree_id = b.tree_id AND a.branch = b.parent_branch{rows}
    {added_branches}
    GROUP BY b.tree_id, b.branch, b.parent_branch, p.parent_position, b.parent_position
)
SELECT n.tree_id, n.branch, a.level, a.ancestor, a.first, a.last, a.next_branch
FROM added AS n
JOIN ancestors AS a ON a.tree_id = n.tree_id AND a.branch = n.parent_branch{rows}
WHERE a.level >= n.carry
UNION ALL
SELECT n.tree_id, n.branch, 0, n.parent_branch, n.first, n.last, n.branch
FROM added AS n
UNION ALL
SELECT n.tree_id, n.branch, a.level + 1, n.parent_branch, MIN(a.first), MAX(a.last), n.branch
FROM added AS n
JOIN ancestors AS a ON a.tree_id = n.tree_id AND a.branch = n.parent_branch{rows}
WHERE a.level < n.carry
GROUP BY n.tree_id, n.branch, n.parent_branch, a.level

-- query: write
INSERT INTO ancestors (tree_id, branch, level, ancestor, first, last, next_branch)
{derived}

-- query: missing
SELECT b.branch
FROM branches AS b
WHERE b.tree_id = :tree_id AND b.parent_branch IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM ancestors AS a WHERE a.tree_id = :tree_id AND a.branch = b.branch
)
ORDER BY b.branch

-- query: breaches
-- The rows that are there or should be there, but not both.
SELECT tree_id, branch, level, ancestor
FROM (
    SELECT * FROM ({derived}) AS due
    UNION ALL
    SELECT tree_id, branch, level, ancestor, first, last, next_branch FROM ancestors
) AS told
GROUP BY tree_id, branch, level, ancestor, first, last, next_branch
HAVING COUNT(*) <> 2
ORDER BY tree_id, branch, level, ancestor
