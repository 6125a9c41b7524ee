WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
  SELECT branch,
    parent_branch,
    parent_position + 1,
    %(last)s::BIGINT
  FROM branches
  WHERE tree_id = %(tree_id)s::BIGINT
    AND branch = %(branch)s::BIGINT
  UNION ALL
  SELECT parents.branch,
    parents.parent_branch,
    parents.parent_position + 1,
    CASE
      WHEN walk.first <= %(last)s::BIGINT THEN walk.first - 1
      ELSE %(last)s::BIGINT
    END
  FROM branches AS parents
  JOIN walk ON parents.branch = walk.parent_branch
  WHERE parents.tree_id = %(tree_id)s::BIGINT
    AND walk.first > %(start)s::BIGINT
),
segments AS (
  SELECT branch,
    CASE
      WHEN first < %(start)s::BIGINT THEN %(start)s::BIGINT
      ELSE first
    END AS first,
    last
  FROM walk
  WHERE CASE
    WHEN first < %(start)s::BIGINT THEN %(start)s::BIGINT
    ELSE first
  END <= last
)
SELECT tool_results.seq
FROM segments
JOIN tool_results ON tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = segments.branch
  AND tool_results.seq BETWEEN segments.first AND segments.last
WHERE tool_results.seq >= %(start)s::BIGINT
  AND (
    tool_results.call_seq >= %(start)s::BIGINT
    OR %(adopt)s::BIGINT = 1
  )
  AND tool_results.seq < %(judged_before)s::BIGINT
ORDER BY tool_results.seq DESC
LIMIT 1 OFFSET %(clear_keep)s::BIGINT
