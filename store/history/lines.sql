-- The branches of a line and the runs that they hold. A file is walked up, from a branch to its
-- parent; a server reads the rows of a branch's ancestors.
--
-- Values: whole numbers, but :session_id.

-- query: segments
-- The runs that hold the positions :start to :last. The walk ends at the branch that holds the first.
WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
    SELECT branches.branch, branches.parent_branch, branches.parent_position + 1, :last
    FROM branches
    WHERE branches.tree_id = :tree_id AND branches.branch = :branch
    UNION ALL
    SELECT parents.branch, parents.parent_branch, parents.parent_position + 1,
        CASE WHEN walk.first <= :last THEN walk.first - 1 ELSE :last END
    FROM walk
    JOIN branches AS parents
        ON parents.tree_id = :tree_id AND parents.branch = walk.parent_branch
    WHERE walk.first > :start
)
SELECT branch, CASE WHEN first < :start THEN :start ELSE first END AS first, last
FROM walk
WHERE CASE WHEN first < :start THEN :start ELSE first END <= last

-- part: asked
-- The positions of an ancestor, as far as they are asked for.
SELECT a.ancestor, GREATEST(a.first, :start), LEAST(a.last, :last)

-- part: meets
-- Whether a row has any of the positions that are asked for.
{it}.last >= :start AND {it}.first <= :last

-- server: segments
SELECT b.branch AS branch, GREATEST(b.parent_position + 1, :start) AS first, :last AS last
FROM branches AS b
WHERE b.tree_id = :tree_id AND b.branch = :branch AND b.parent_position < :last
UNION ALL
{asked}
FROM ancestors AS a
WHERE a.tree_id = :tree_id AND a.branch = :branch AND a.level = 0 AND a.first <= a.last
    AND {meets:a}
UNION ALL
{asked}
FROM ancestors AS b
JOIN ancestors AS a ON a.tree_id = :tree_id AND a.branch = b.ancestor AND a.level = 0
WHERE b.tree_id = :tree_id AND b.branch = :branch AND b.level = 1 AND a.first <= a.last
    AND {meets:b} AND {meets:a}
UNION ALL
{asked}
FROM ancestors AS c
JOIN ancestors AS b ON b.tree_id = :tree_id AND b.branch = c.ancestor AND b.level = 1
JOIN ancestors AS a ON a.tree_id = :tree_id AND a.branch = b.ancestor AND a.level = 0
WHERE c.tree_id = :tree_id AND c.branch = :branch AND c.level = 2 AND a.first <= a.last
    AND {meets:c} AND {meets:b} AND {meets:a}

-- query: line
-- Each branch of a line, how far the line goes on it, and the newest record on it that counts.
WITH RECURSIVE walk(branch, parent_branch, parent_position, records_seen, last, newest) AS (
    SELECT branches.branch, branches.parent_branch, branches.parent_position,
        branches.records_seen, :last, :newest
    FROM branches
    WHERE branches.tree_id = :tree_id AND branches.branch = :branch
    UNION ALL
    SELECT parents.branch, parents.parent_branch, parents.parent_position, parents.records_seen,
        CASE WHEN walk.parent_position < walk.last THEN walk.parent_position ELSE walk.last END,
        walk.records_seen
    FROM walk
    JOIN branches AS parents
        ON parents.tree_id = :tree_id AND parents.branch = walk.parent_branch
)
SELECT branch, last, newest
FROM walk

-- part: near
-- The nearer ancestors of the branches of a table, then the farther ones.
{it}
JOIN ancestors AS a ON a.tree_id = :tree_id AND a.branch = {it}.branch AND a.level = 0

-- part: far
{it}
JOIN ancestors AS b ON b.tree_id = :tree_id AND b.branch = {it}.branch AND b.level = 1
JOIN ancestors AS a ON a.tree_id = :tree_id AND a.branch = b.ancestor AND a.level = 0

-- part: farthest
{it}
JOIN ancestors AS c ON c.tree_id = :tree_id AND c.branch = {it}.branch AND c.level = 2
JOIN ancestors AS b ON b.tree_id = :tree_id AND b.branch = c.ancestor AND b.level = 1
JOIN ancestors AS a ON a.tree_id = :tree_id AND a.branch = b.ancestor AND a.level = 0

-- part: above
-- The branches above one branch, and for each its last position and the branch that hangs there.
SELECT a.ancestor, a.last, a.next_branch
FROM {near:branches}
WHERE branches.tree_id = :tree_id AND branches.branch = :branch
UNION ALL
SELECT a.ancestor, a.last, a.next_branch
FROM {far:branches}
WHERE branches.tree_id = :tree_id AND branches.branch = :branch
UNION ALL
SELECT a.ancestor, a.last, a.next_branch
FROM {farthest:branches}
WHERE branches.tree_id = :tree_id AND branches.branch = :branch

-- part: below
branches AS below
WHERE below.tree_id = :tree_id AND below.branch = above.next_branch

-- server: line
SELECT branches.branch, :last AS last, :newest AS newest
FROM branches
WHERE branches.tree_id = :tree_id AND branches.branch = :branch
UNION ALL
SELECT above.ancestor, LEAST(above.last, :last), below.records_seen
FROM (
    {above}
) AS above
{lookup:below}

-- query: locked
-- The first branch of a session's tree, for the locks of a writer on a server.
SELECT branches.branch
FROM branches
JOIN sessions ON sessions.tree_id = :tree_id AND sessions.id = :session_id
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch
LIMIT 1

-- server: locked
SELECT branches.branch
FROM branches
JOIN sessions ON sessions.tree_id = :tree_id AND sessions.id = :session_id
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch
LIMIT 1
FOR NO KEY UPDATE OF branches
FOR UPDATE OF sessions
