-- context.request.TODO_CALLS
WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
  SELECT branches.branch AS branch,
    branches.parent_branch AS parent_branch,
    branches.parent_position + 1 AS first,
    :last AS last
  FROM branches
  WHERE branches.tree_id = :tree_id
    AND branches.branch = :branch
  UNION ALL
  SELECT parents.branch AS branch,
    parents.parent_branch AS parent_branch,
    parents.parent_position + 1 AS anon_1,
    CASE
      WHEN (walk.first <= :last) THEN walk.first - 1
      ELSE :last
    END AS anon_2
  FROM branches AS parents
  JOIN walk ON parents.branch = walk.parent_branch
  WHERE parents.tree_id = :tree_id
    AND walk.first > :start
),
segments AS (
  SELECT walk.branch AS branch,
    CASE
      WHEN (walk.first < :start) THEN :start
      ELSE walk.first
    END AS first,
    walk.last AS last
  FROM walk
  WHERE CASE
    WHEN (walk.first < :start) THEN :start
    ELSE walk.first
  END <= walk.last
)
SELECT tool_results.seq,
  tool_results.call_seq,
  tool_results.call_position
FROM segments
JOIN tool_results ON tool_results.tree_id = :tree_id
  AND tool_results.branch = segments.branch
  AND tool_results.seq BETWEEN segments.first AND segments.last
WHERE tool_results.tool_name IN (
  SELECT tool_kinds.name
  FROM tool_kinds
  WHERE tool_kinds.kind = 'todo'
    AND (
      tool_kinds.name NOT IN (
        SELECT pairs.key
        FROM json_each_text(CAST(:kinds AS json)) AS pairs
      )
    )
  UNION ALL
  SELECT pairs.key
  FROM json_each_text(CAST(:kinds AS json)) AS pairs
  WHERE pairs.value = 'todo'
)
  AND tool_results.call_seq IS NOT NULL
ORDER BY tool_results.seq DESC
LIMIT :limit

