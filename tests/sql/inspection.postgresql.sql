-- inspection.checks.STORED_KEYS
SELECT session_keys.key,
  session_keys.value
FROM session_keys
WHERE session_keys.tree_id = :tree_id
  AND session_keys.session_id = :session_id COLLATE "C"

-- inspection.dump.INSERT_ID
INSERT INTO session_ids (id, tree_id)
VALUES (:id COLLATE "C", :tree_id)

-- inspection.dump.OWNER_TREES
SELECT sessions.tree_id
FROM sessions
WHERE sessions.owner = :owner COLLATE "C"
UNION
SELECT kept_usages.tree_id
FROM kept_usages
WHERE kept_usages.owner = :owner COLLATE "C"
ORDER BY tree_id

-- inspection.usage_statistics.LINE_CALL_COUNT
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
SELECT count(*) AS count_1
FROM segments
JOIN tool_calls ON tool_calls.tree_id = :tree_id
  AND tool_calls.branch = segments.branch
  AND tool_calls.seq BETWEEN segments.first AND segments.last

-- inspection.usage_statistics.LINE_FILES
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
),
overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(:kinds AS json)) AS pairs
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
JOIN tool_results ON tool_results.tree_id = :tree_id
  AND tool_results.branch = segments.branch
  AND tool_results.seq BETWEEN segments.first AND segments.last
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
  ) AS BIGINT
) DESC,
  tool_result_paths.path
LIMIT :limit

-- inspection.usage_statistics.LINE_TOOLS
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
),
overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(:kinds AS json)) AS pairs
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
                WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal
                WHEN (
                  coalesce(overrides.kind, tool_kinds.kind, 'other') = 'terminal'
                ) THEN 1
                ELSE 0
              END = 1
              AND (
                (:stderr_always = 1 AND tool_results.has_stderr = 1)
                OR (
                  :stderr_nonzero = 1
                  AND tool_results.has_stderr = 1
                  AND (
                    tool_results.exit_code IS NULL
                    OR tool_results.exit_code <> 0
                  )
                )
                OR (:exit_code_is_error = 1 AND tool_results.exit_code <> 0)
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
FROM segments
JOIN tool_results ON tool_results.tree_id = :tree_id
  AND tool_results.branch = segments.branch
  AND tool_results.seq BETWEEN segments.first AND segments.last
LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
LEFT OUTER JOIN overrides ON tool_results.tool_name = overrides.name
LEFT OUTER JOIN token_counts ON token_counts.tree_id = tool_results.tree_id
  AND token_counts.branch = tool_results.branch
  AND token_counts.seq = tool_results.seq
  AND token_counts.encoding = :encoding
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

-- inspection.usage_statistics.REPLACED_RESULTS
SELECT tool_results.seq,
  tool_results.tool_name,
  tool_result_paths.path
FROM tool_results
LEFT OUTER JOIN tool_result_paths ON tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = tool_results.branch
  AND tool_result_paths.seq = tool_results.seq
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq BETWEEN :first AND :last
  AND tool_results.seq IN (
    SELECT CAST(places.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(:places AS json)) AS places
  )
ORDER BY tool_results.seq,
  tool_result_paths.path

-- inspection.usage_statistics.STORE_FILES
WITH overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(:kinds AS json)) AS pairs
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
  ) AS BIGINT
) DESC,
  tool_result_paths.path
LIMIT :limit

-- inspection.usage_statistics.STORE_TOOLS
WITH overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(:kinds AS json)) AS pairs
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
                WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal
                WHEN (
                  coalesce(overrides.kind, tool_kinds.kind, 'other') = 'terminal'
                ) THEN 1
                ELSE 0
              END = 1
              AND (
                (:stderr_always = 1 AND tool_results.has_stderr = 1)
                OR (
                  :stderr_nonzero = 1
                  AND tool_results.has_stderr = 1
                  AND (
                    tool_results.exit_code IS NULL
                    OR tool_results.exit_code <> 0
                  )
                )
                OR (:exit_code_is_error = 1 AND tool_results.exit_code <> 0)
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
  AND token_counts.encoding = :encoding
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

