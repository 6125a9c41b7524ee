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
SELECT tool_results.branch,
  tool_results.seq,
  tool_results.tool_name,
  coalesce(tool_kinds.kind, 'other') AS coalesce_1,
  tool_results.exit_code,
  tool_results.error_prefix,
  tool_results.status,
  tool_results.has_stderr,
  tool_results.looks_terminal,
  tool_calls.arguments_form,
  tool_calls.arguments
FROM tool_results
LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
LEFT OUTER JOIN segments ON tool_results.call_seq BETWEEN segments.first AND segments.last
LEFT OUTER JOIN tool_calls ON tool_calls.tree_id = %(tree_id)s::BIGINT
  AND tool_calls.branch = segments.branch
  AND tool_calls.seq = tool_results.call_seq
  AND tool_calls.position = tool_results.call_position
WHERE tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = %(branch)s::BIGINT
  AND tool_results.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND (
    tool_results.tool_name IN (
      SELECT tool_kinds.name
      FROM tool_kinds
      WHERE tool_kinds.kind = 'terminal'
        AND (
          tool_kinds.name NOT IN (
            SELECT pairs.key
            FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs
          )
        )
      UNION ALL
      SELECT pairs.key
      FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs
      WHERE pairs.value = 'terminal'
    )
    OR tool_results.looks_terminal = 1
    OR (
      (tool_results.error_prefix = 1)
      OR (tool_results.status = 'error')
    )
  )
ORDER BY tool_results.seq
