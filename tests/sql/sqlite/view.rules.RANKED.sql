WITH segments AS (
  SELECT CAST(:branch AS BIGINT) AS branch,
    CAST(:begin AS BIGINT) AS first,
    CAST(:last AS BIGINT) AS last
),
named AS NOT MATERIALIZED (
  SELECT tool_results.branch,
    tool_results.seq,
    tool_results.call_seq,
    tool_results.call_position,
    tool_results.tool_name,
    COALESCE(
      tool_results.at,
      CASE
        WHEN :by_stored_at = 1 THEN (
          SELECT messages.stored_at
          FROM messages
          WHERE messages.tree_id = :tree_id
            AND messages.branch = tool_results.branch
            AND messages.seq = tool_results.seq
        )
      END
    ) AS at,
    tool_results.length,
    tool_results.size,
    tool_results.paths_complete,
    tool_results.status,
    tool_results.exit_code,
    tool_results.has_stderr,
    tool_results.error_prefix,
    CASE
      WHEN :sniff = 1
      OR COALESCE(tool_results.tool_name, '') = '' THEN tool_results.looks_terminal
      WHEN tool_results.tool_name IN (
        SELECT name
        FROM tool_kinds
        WHERE kind = 'terminal'
          AND name NOT IN (
            SELECT pairs.key
            FROM json_each(:kinds) AS pairs
          )
        UNION ALL
        SELECT pairs.key
        FROM json_each(:kinds) AS pairs
        WHERE pairs.value = 'terminal'
      ) THEN 1
      ELSE 0
    END AS is_terminal,
    CASE
      WHEN tool_results.tool_name IN (
        SELECT name
        FROM tool_kinds
        WHERE kind = 'file_read'
          AND name NOT IN (
            SELECT pairs.key
            FROM json_each(:kinds) AS pairs
          )
        UNION ALL
        SELECT pairs.key
        FROM json_each(:kinds) AS pairs
        WHERE pairs.value = 'file_read'
      ) THEN 1
      ELSE 0
    END AS reads
  FROM segments
  JOIN tool_results ON tool_results.tree_id = :tree_id
    AND tool_results.branch = segments.branch
    AND tool_results.seq BETWEEN segments.first AND segments.last
  WHERE tool_results.seq >= :start
    AND (tool_results.call_seq >= :start OR :adopt = 1)
),
judged AS (
  SELECT branch,
    seq,
    tool_name,
    at,
    length,
    size,
    paths_complete,
    is_terminal,
    CASE
      WHEN reads = 1
      AND seq < :judged_before THEN 1
      ELSE 0
    END AS is_read,
    CASE
      WHEN ((named.error_prefix = 1) OR (named.status = 'error')) THEN 1
      WHEN (
        (:stderr_always = 1 AND named.has_stderr = 1)
        OR (
          :stderr_nonzero = 1
          AND named.has_stderr = 1
          AND (named.exit_code IS NULL OR named.exit_code <> 0)
        )
        OR (:exit_code_is_error = 1 AND named.exit_code <> 0)
      )
      AND is_terminal = 1 THEN 1
      ELSE 0
    END AS is_error,
    CASE WHEN status = 'pending' THEN 1 ELSE 0 END AS is_pending
  FROM named
),
counting AS (
  SELECT branch,
    seq,
    at,
    CASE
      WHEN at IS NOT NULL
      AND seq < :judged_before
      AND (is_error = 0 OR :errors_take_slots = 1) THEN 1
      ELSE 0
    END AS takes_slot,
    CASE
      WHEN is_read = 1
      AND is_error = 0
      AND is_pending = 0
      AND at IS NOT NULL THEN 1
      ELSE 0
    END AS counts
  FROM judged
)
SELECT counting.seq,
  at,
  takes_slot,
  path,
  CASE WHEN :dedupe = 1 THEN 1 ELSE mentions END AS mentions
FROM counting
LEFT JOIN tool_result_paths ON counts = 1
  AND tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = counting.branch
  AND tool_result_paths.seq = counting.seq
ORDER BY counting.seq
