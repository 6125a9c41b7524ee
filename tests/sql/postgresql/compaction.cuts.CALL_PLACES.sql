WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
  SELECT branches.branch AS branch,
    branches.parent_branch AS parent_branch,
    branches.parent_position + 1 AS first,
    %(last)s::BIGINT AS last
  FROM branches
  WHERE branches.tree_id = %(tree_id)s::BIGINT
    AND branches.branch = %(branch)s::BIGINT
  UNION ALL
  SELECT parents.branch AS branch,
    parents.parent_branch AS parent_branch,
    parents.parent_position + 1 AS anon_1,
    CASE
      WHEN (walk.first <= %(last)s::BIGINT) THEN walk.first - 1
      ELSE %(last)s::BIGINT
    END AS anon_2
  FROM branches AS parents
  JOIN walk ON parents.branch = walk.parent_branch
  WHERE parents.tree_id = %(tree_id)s::BIGINT
    AND walk.first > %(start)s::BIGINT
),
segments AS (
  SELECT walk.branch AS branch,
    CASE
      WHEN (walk.first < %(start)s::BIGINT) THEN %(start)s::BIGINT
      ELSE walk.first
    END AS first,
    walk.last AS last
  FROM walk
  WHERE CASE
    WHEN (walk.first < %(start)s::BIGINT) THEN %(start)s::BIGINT
    ELSE walk.first
  END <= walk.last
)
SELECT tool_calls.seq,
  tool_calls.position
FROM segments
JOIN tool_calls ON tool_calls.tree_id = %(tree_id)s::BIGINT
  AND tool_calls.branch = segments.branch
  AND tool_calls.seq BETWEEN segments.first AND segments.last
WHERE tool_calls.seq <= %(until)s::BIGINT
