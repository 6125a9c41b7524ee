WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
  SELECT branch,
    parent_branch,
    parent_position + 1,
    :last
  FROM branches
  WHERE tree_id = :tree_id
    AND branch = :branch
  UNION ALL
  SELECT parents.branch,
    parents.parent_branch,
    parents.parent_position + 1,
    CASE
      WHEN walk.first <= :last THEN walk.first - 1
      ELSE :last
    END
  FROM branches AS parents
  JOIN walk ON parents.branch = walk.parent_branch
  WHERE parents.tree_id = :tree_id
    AND walk.first > :start
),
segments AS (
  SELECT branch,
    CASE WHEN first < :start THEN :start ELSE first END AS first,
    last
  FROM walk
  WHERE CASE WHEN first < :start THEN :start ELSE first END <= last
)
SELECT tool_results.seq
FROM segments
JOIN tool_results ON tool_results.tree_id = :tree_id
  AND tool_results.branch = segments.branch
  AND tool_results.seq BETWEEN segments.first AND segments.last
WHERE tool_results.seq >= :start
  AND (tool_results.call_seq >= :start OR :adopt = 1)
  AND tool_results.seq < :judged_before
ORDER BY tool_results.seq DESC
LIMIT 1 OFFSET :clear_keep
