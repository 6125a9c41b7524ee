-- context.request.TODO_CALLS
WITH segments AS (
  SELECT b.branch AS branch,
    GREATEST(b.parent_position + 1, :start) AS first,
    :last AS last
  FROM branches AS b
  WHERE b.tree_id = :tree_id
    AND b.branch = :branch
    AND b.parent_position < :last
  UNION ALL
  SELECT a.ancestor,
    GREATEST(a.first, :start),
    LEAST(a.last, :last)
  FROM ancestors AS a
  WHERE a.tree_id = :tree_id
    AND a.branch = :branch
    AND a.level = 0
    AND a.first <= a.last
    AND a.last >= :start
    AND a.first <= :last
  UNION ALL
  SELECT a.ancestor,
    GREATEST(a.first, :start),
    LEAST(a.last, :last)
  FROM ancestors AS b
  JOIN ancestors AS a ON a.tree_id = :tree_id
    AND a.branch = b.ancestor
    AND a.level = 0
  WHERE b.tree_id = :tree_id
    AND b.branch = :branch
    AND b.level = 1
    AND a.first <= a.last
    AND b.last >= :start
    AND b.first <= :last
    AND a.last >= :start
    AND a.first <= :last
  UNION ALL
  SELECT a.ancestor,
    GREATEST(a.first, :start),
    LEAST(a.last, :last)
  FROM ancestors AS c
  JOIN ancestors AS b ON b.tree_id = :tree_id
    AND b.branch = c.ancestor
    AND b.level = 1
  JOIN ancestors AS a ON a.tree_id = :tree_id
    AND a.branch = b.ancestor
    AND a.level = 0
  WHERE c.tree_id = :tree_id
    AND c.branch = :branch
    AND c.level = 2
    AND a.first <= a.last
    AND c.last >= :start
    AND c.first <= :last
    AND b.last >= :start
    AND b.first <= :last
    AND a.last >= :start
    AND a.first <= :last
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

