WITH RECURSIVE segments(branch, parent_branch, first, last) AS 
(SELECT branches.branch AS branch, branches.parent_branch AS parent_branch, branches.parent_position + 1 AS first, %(last)s::BIGINT AS last 
FROM branches 
WHERE branches.tree_id = %(tree_id)s::BIGINT AND branches.branch = %(branch)s::BIGINT UNION ALL SELECT parents.branch AS branch, parents.parent_branch AS parent_branch, parents.parent_position + 1 AS anon_1, CASE WHEN (segments.first <= %(last)s::BIGINT) THEN segments.first - 1 ELSE %(last)s::BIGINT END AS anon_2 
FROM branches AS parents JOIN segments ON parents.branch = segments.parent_branch 
WHERE parents.tree_id = %(tree_id)s::BIGINT AND segments.first > %(start)s::BIGINT)
 SELECT segments.branch, segments.first, segments.last 
FROM segments 
WHERE segments.first <= segments.last ORDER BY segments.first
