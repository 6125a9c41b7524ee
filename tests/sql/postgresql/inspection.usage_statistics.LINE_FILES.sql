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
),
overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs
)
SELECT tool_result_paths.path,
  coalesce(
    sum(
      CASE
        WHEN (
          coalesce(overrides.kind, tool_kinds.kind, 'other') = 'file_read'
        ) THEN 1
        ELSE 0
      END
    ),
    0
  ) AS coalesce_1,
  coalesce(
    sum(
      CASE
        WHEN (
          coalesce(overrides.kind, tool_kinds.kind, 'other') = 'file_edit'
        ) THEN 1
        ELSE 0
      END
    ),
    0
  ) AS coalesce_2,
  count(*) AS count_1,
  CAST(
    sum(
      coalesce(
        token_counts.tokens,
        FLOOR(((11 * tool_results.size - tool_results.length) + 39) / 40) + 4
      )
    ) AS BIGINT
  ) AS sum_1
FROM segments
JOIN tool_results ON tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = segments.branch
  AND tool_results.seq BETWEEN segments.first AND segments.last
LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
LEFT OUTER JOIN overrides ON tool_results.tool_name = overrides.name
LEFT OUTER JOIN token_counts ON token_counts.tree_id = tool_results.tree_id
  AND token_counts.branch = tool_results.branch
  AND token_counts.seq = tool_results.seq
  AND token_counts.encoding = %(encoding)s::VARCHAR
JOIN tool_result_paths ON tool_result_paths.tree_id = tool_results.tree_id
  AND tool_result_paths.branch = tool_results.branch
  AND tool_result_paths.seq = tool_results.seq
GROUP BY tool_result_paths.path
ORDER BY CAST(
  sum(
    coalesce(
      token_counts.tokens,
      FLOOR(((11 * tool_results.size - tool_results.length) + 39) / 40) + 4
    )
  ) AS BIGINT
) DESC,
  tool_result_paths.path
LIMIT %(limit)s::BIGINT
