-- The runs that hold the positions :start to :last of a line on a server, by the rows of ancestors.
--
-- Values: whole numbers.

-- part: held
-- The positions of an ancestor, as far as they are asked for.
SELECT a.ancestor, GREATEST(a.first, :start), LEAST(a.last, :last)

-- part: meets
-- Whether a row has any of the positions that are asked for.
{it}.last >= :start AND {it}.first <= :last

-- query: segments
SELECT b.branch AS branch, GREATEST(b.parent_position + 1, :start) AS first, :last AS last
FROM branches AS b
WHERE b.tree_id = :tree_id AND b.branch = :branch AND b.parent_position < :last
UNION ALL
{held}
FROM ancestors AS a
WHERE a.tree_id = :tree_id AND a.branch = :branch AND a.level = 0 AND a.first <= a.last
    AND {meets:a}
UNION ALL
{held}
FROM ancestors AS b
JOIN ancestors AS a ON a.tree_id = :tree_id AND a.branch = b.ancestor AND a.level = 0
WHERE b.tree_id = :tree_id AND b.branch = :branch AND b.level = 1 AND a.first <= a.last
    AND {meets:b} AND {meets:a}
UNION ALL
{held}
FROM ancestors AS c
JOIN ancestors AS b ON b.tree_id = :tree_id AND b.branch = c.ancestor AND b.level = 1
JOIN ancestors AS a ON a.tree_id = :tree_id AND a.branch = b.ancestor AND a.level = 0
WHERE c.tree_id = :tree_id AND c.branch = :branch AND c.level = 2 AND a.first <= a.last
    AND {meets:c} AND {meets:b} AND {meets:a}
ORDER BY first
