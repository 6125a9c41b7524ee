WITH overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs
)
SELECT tool_results.tool_name,
  coalesce(overrides.kind, tool_kinds.kind, 'other') AS coalesce_1,
  count(*) AS count_1,
  coalesce(
    sum(
      CASE
        WHEN (
          CASE
            WHEN (
              (tool_results.error_prefix = 1)
              OR (tool_results.status = 'error')
            ) THEN 1
            WHEN (
              CASE
                WHEN (
                  %(sniff)s::BIGINT = 1
                  OR coalesce(tool_results.tool_name, '') = ''
                ) THEN tool_results.looks_terminal
                WHEN (
                  coalesce(overrides.kind, tool_kinds.kind, 'other') = 'terminal'
                ) THEN 1
                ELSE 0
              END = 1
              AND (
                (
                  %(stderr_always)s::BIGINT = 1
                  AND tool_results.has_stderr = 1
                )
                OR (
                  %(stderr_nonzero)s::BIGINT = 1
                  AND tool_results.has_stderr = 1
                  AND (
                    tool_results.exit_code IS NULL
                    OR tool_results.exit_code <> 0
                  )
                )
                OR (
                  %(exit_code_is_error)s::BIGINT = 1
                  AND tool_results.exit_code <> 0
                )
              )
            ) THEN 1
            ELSE 0
          END = 1
        ) THEN 1
        ELSE 0
      END
    ),
    0
  ) AS coalesce_2,
  CAST(
    sum(
      coalesce(
        token_counts.tokens,
        FLOOR(((11 * tool_results.size - tool_results.length) + 39) / 40) + 4
      )
    ) AS BIGINT
  ) AS sum_1
FROM tool_results
LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
LEFT OUTER JOIN overrides ON tool_results.tool_name = overrides.name
LEFT OUTER JOIN token_counts ON token_counts.tree_id = tool_results.tree_id
  AND token_counts.branch = tool_results.branch
  AND token_counts.seq = tool_results.seq
  AND token_counts.encoding = %(encoding)s::VARCHAR
GROUP BY tool_results.tool_name,
  coalesce(overrides.kind, tool_kinds.kind, 'other')
ORDER BY CAST(
  sum(
    coalesce(
      token_counts.tokens,
      FLOOR(((11 * tool_results.size - tool_results.length) + 39) / 40) + 4
    )
  ) AS BIGINT
) DESC,
  tool_results.tool_name
