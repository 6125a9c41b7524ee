WITH segments AS MATERIALIZED (
  SELECT json_extract(value, '$[0]') AS branch,
    json_extract(value, '$[1]') AS first,
    json_extract(value, '$[2]') AS last
  FROM json_each(:runs)
),
overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each(:kinds) AS pairs
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
    COALESCE(overrides.kind, tool_kinds.kind) AS kind,
    CASE
      WHEN :sniff = 1
      OR COALESCE(tool_results.tool_name, '') = '' THEN tool_results.looks_terminal
      WHEN COALESCE(overrides.kind, tool_kinds.kind) = 'terminal' THEN 1
      ELSE 0
    END AS is_terminal,
    CASE
      WHEN COALESCE(overrides.kind, tool_kinds.kind) = 'file_read' THEN 1
      ELSE 0
    END AS reads,
    CASE
      WHEN tool_results.length = 10
      AND EXISTS (
        SELECT messages.seq
        FROM messages
        WHERE messages.tree_id = :tree_id
          AND messages.branch = tool_results.branch
          AND messages.seq = tool_results.seq
          AND messages.content = '[redacted]'
          AND messages.extra LIKE '%"redacted"_true%'
      ) THEN 1
      ELSE 0
    END AS is_redacted
  FROM segments CROSS
  JOIN tool_results
  LEFT JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
  LEFT JOIN overrides ON overrides.name = tool_results.tool_name
  WHERE tool_results.tree_id = :tree_id
    AND tool_results.branch = segments.branch
    AND tool_results.seq BETWEEN segments.first AND segments.last
    AND (tool_results.call_seq >= :start OR :adopt = 1)
),
judged AS (
  SELECT branch,
    seq,
    call_seq,
    call_position,
    tool_name,
    kind,
    at,
    length,
    size,
    paths_complete,
    is_terminal,
    is_redacted,
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
)
SELECT judged.seq,
  path,
  start_line,
  end_line,
  contiguous
FROM judged
LEFT JOIN tool_result_paths ON tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = judged.branch
  AND tool_result_paths.seq = judged.seq
WHERE is_read = 1
  AND is_redacted = 0
  AND is_error = 0
  AND is_pending = 0
  AND at IS NOT NULL
ORDER BY at DESC,
  judged.seq DESC
