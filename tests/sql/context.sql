-- context.request.TODO_CALLS
WITH segments AS (
  WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
    SELECT branches.branch,
      branches.parent_branch,
      branches.parent_position + 1,
      :last
    FROM branches
    WHERE branches.tree_id = :tree_id
      AND branches.branch = :branch
    UNION ALL
    SELECT parents.branch,
      parents.parent_branch,
      parents.parent_position + 1,
      CASE
        WHEN walk.first <= :last THEN walk.first - 1
        ELSE :last
      END
    FROM walk
    JOIN branches AS parents ON parents.tree_id = :tree_id
      AND parents.branch = walk.parent_branch
    WHERE walk.first > :start
  )
  SELECT branch,
    CASE WHEN first < :start THEN :start ELSE first END AS first,
    last
  FROM walk
  WHERE CASE WHEN first < :start THEN :start ELSE first END <= last
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
        SELECT pairs."key"
        FROM json_each(:kinds) AS pairs
      )
    )
  UNION ALL
  SELECT pairs."key"
  FROM json_each(:kinds) AS pairs
  WHERE pairs.value = 'todo'
)
  AND tool_results.call_seq IS NOT NULL
ORDER BY tool_results.seq DESC
LIMIT :limit OFFSET :param_1

