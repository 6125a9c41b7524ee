WITH overrides AS MATERIALIZED (
  SELECT pairs."key" AS name,
    pairs.value AS kind
  FROM json_each(:kinds) AS pairs
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
    ) AS INTEGER
  ) AS sum_1
FROM tool_results
LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
LEFT OUTER JOIN overrides ON tool_results.tool_name = overrides.name
LEFT OUTER JOIN token_counts ON token_counts.tree_id = tool_results.tree_id
  AND token_counts.branch = tool_results.branch
  AND token_counts.seq = tool_results.seq
  AND token_counts.encoding = :encoding
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
  ) AS INTEGER
) DESC,
  tool_result_paths.path
LIMIT :limit OFFSET :param_1
