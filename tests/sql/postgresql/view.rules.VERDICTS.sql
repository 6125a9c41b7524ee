WITH segments AS MATERIALIZED (
  SELECT CAST(value ->> 0 AS BIGINT) AS branch,
    CAST(value ->> 1 AS BIGINT) AS first,
    CAST(value ->> 2 AS BIGINT) AS last
  FROM json_array_elements(CAST(%(runs)s::VARCHAR AS json))
),
overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(%(kinds)s::VARCHAR AS json)) AS pairs
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
        WHEN %(by_stored_at)s::BIGINT = 1 THEN (
          SELECT messages.stored_at
          FROM messages
          WHERE messages.tree_id = %(tree_id)s::BIGINT
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
      WHEN %(sniff)s::BIGINT = 1
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
        WHERE messages.tree_id = %(tree_id)s::BIGINT
          AND messages.branch = tool_results.branch
          AND messages.seq = tool_results.seq
          AND messages.content = '[redacted]'
          AND messages.extra LIKE '%%"redacted"_true%%'
      ) THEN 1
      ELSE 0
    END AS is_redacted
  FROM segments CROSS
  JOIN tool_results
  LEFT JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
  LEFT JOIN overrides ON overrides.name = tool_results.tool_name
  WHERE tool_results.tree_id = %(tree_id)s::BIGINT
    AND tool_results.branch = segments.branch
    AND tool_results.seq BETWEEN segments.first AND segments.last
    AND (
      tool_results.call_seq >= %(start)s::BIGINT
      OR %(adopt)s::BIGINT = 1
    )
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
      AND seq < %(judged_before)s::BIGINT THEN 1
      ELSE 0
    END AS is_read,
    CASE
      WHEN ((named.error_prefix = 1) OR (named.status = 'error')) THEN 1
      WHEN (
        (%(stderr_always)s::BIGINT = 1 AND named.has_stderr = 1)
        OR (
          %(stderr_nonzero)s::BIGINT = 1
          AND named.has_stderr = 1
          AND (named.exit_code IS NULL OR named.exit_code <> 0)
        )
        OR (
          %(exit_code_is_error)s::BIGINT = 1
          AND named.exit_code <> 0
        )
      )
      AND is_terminal = 1 THEN 1
      ELSE 0
    END AS is_error,
    CASE WHEN status = 'pending' THEN 1 ELSE 0 END AS is_pending
  FROM named
),
slots AS (
  SELECT seq,
    ROW_NUMBER() OVER (ORDER BY at DESC, seq DESC) AS nth
  FROM judged
  WHERE %(terminal)s::BIGINT = 1
    AND at IS NOT NULL
    AND is_redacted = 0
    AND seq < %(judged_before)s::BIGINT
    AND (is_error = 0 OR %(errors_take_slots)s::BIGINT = 1)
),
newest AS MATERIALIZED (
  SELECT seq
  FROM slots
  WHERE nth <= %(terminal_keep)s::BIGINT
),
reads AS (
  SELECT judged.seq,
    at,
    path,
    CASE WHEN %(dedupe)s::BIGINT = 1 THEN 1 ELSE mentions END AS mentions
  FROM judged
  JOIN tool_result_paths ON tool_result_paths.tree_id = %(tree_id)s::BIGINT
    AND tool_result_paths.branch = judged.branch
    AND tool_result_paths.seq = judged.seq
  WHERE %(file_read)s::BIGINT = 1
    AND is_read = 1
    AND is_redacted = 0
    AND is_error = 0
    AND is_pending = 0
    AND at IS NOT NULL
),
counted AS (
  SELECT seq,
    path,
    mentions,
    SUM(mentions) OVER (
      PARTITION BY path
      ORDER BY at DESC,
        seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS nth
  FROM reads
),
compared AS (
  SELECT seq,
    mentions,
    nth,
    MAX(nth) OVER (PARTITION BY path) AS farthest,
    MIN(CASE WHEN nth <= %(file_read_keep)s::BIGINT THEN seq END) OVER (PARTITION BY path) AS oldest_kept
  FROM counted
),
files AS (
  SELECT seq,
    CASE
      WHEN %(batch_any)s::BIGINT = 1 THEN MAX(nth)
      ELSE MIN(nth)
    END AS nth,
    MIN(nth - mentions) AS newer,
    MAX(
      CASE
        WHEN nth <= %(file_read_keep)s::BIGINT
        AND farthest > %(file_read_keep)s::BIGINT THEN 1
        ELSE 0
      END
    ) AS is_pointed_to,
    MAX(
      CASE
        WHEN %(any_tool)s::BIGINT = 1
        AND oldest_kept < %(clear_before)s::BIGINT
        AND oldest_kept < %(protected_from)s::BIGINT THEN 1
        ELSE 0
      END
    ) AS points_to_cleared
  FROM compared
  GROUP BY seq
),
told AS (
  SELECT judged.*,
    files.nth AS nth_read,
    files.newer,
    files.is_pointed_to,
    files.points_to_cleared,
    CASE
      WHEN judged.seq IN (
        SELECT seq
        FROM newest
      ) THEN 1
      ELSE 0
    END AS is_newest
  FROM judged
  LEFT JOIN files ON files.seq = judged.seq
)
SELECT seq,
  call_seq,
  call_position,
  CASE
    WHEN is_redacted = 1 THEN 'redacted'
    WHEN %(terminal)s::BIGINT = 1
    AND is_terminal = 1
    AND is_error = 0
    AND is_pending = 0
    AND at IS NOT NULL
    AND seq < %(protected_from)s::BIGINT
    AND is_newest = 0
    AND at < %(old_before)s::BIGINT
    AND length > 0
    AND (
      %(min_saving)s::BIGINT = 0
      OR length - %(terminal_placeholder)s::BIGINT >= %(min_saving)s::BIGINT
    ) THEN 'terminal'
    WHEN %(file_read)s::BIGINT = 1
    AND is_read = 1
    AND is_redacted = 0
    AND is_error = 0
    AND is_pending = 0
    AND at IS NOT NULL
    AND seq < %(protected_from)s::BIGINT
    AND nth_read > %(file_read_keep)s::BIGINT
    AND (%(batch_any)s::BIGINT = 1 OR paths_complete = 1)
    AND (
      %(min_saving)s::BIGINT = 0
      OR length - %(file_read_placeholder)s::BIGINT >= %(min_saving)s::BIGINT
    )
    AND points_to_cleared = 0 THEN 'file_read'
    WHEN %(any_tool)s::BIGINT = 1
    AND is_error = 0
    AND is_pending = 0
    AND seq < %(clear_before)s::BIGINT
    AND seq < %(protected_from)s::BIGINT THEN 'any_tool'
    WHEN %(tool_output)s::BIGINT = 1
    AND seq < %(running_from)s::BIGINT
    AND is_pending = 0
    AND (
      is_error = 0
      OR is_terminal = 1
      OR %(errors_stay)s::BIGINT = 0
    )
    AND COALESCE(is_pointed_to, 0) = 0 THEN 'tool_output'
    WHEN is_error = 1 THEN 'error'
    WHEN is_pending = 1 THEN 'pending'
    WHEN %(any_tool)s::BIGINT = 1
    AND seq >= %(clear_before)s::BIGINT THEN 'recent'
    WHEN at IS NULL THEN 'undated'
    WHEN seq >= %(protected_from)s::BIGINT THEN 'current_turn'
    WHEN %(terminal)s::BIGINT = 1
    AND is_terminal = 1
    AND is_newest = 1 THEN 'newest'
    WHEN %(terminal)s::BIGINT = 1
    AND is_terminal = 1
    AND at >= %(old_before)s::BIGINT THEN 'young'
    WHEN (%(terminal)s::BIGINT = 1 AND is_terminal = 1)
    OR (
      %(file_read)s::BIGINT = 1
      AND is_read = 1
      AND nth_read > %(file_read_keep)s::BIGINT
      AND (%(batch_any)s::BIGINT = 1 OR paths_complete = 1)
    ) THEN 'small'
    WHEN %(file_read)s::BIGINT = 1
    AND is_read = 1
    AND nth_read IS NULL THEN 'no_path'
    WHEN %(file_read)s::BIGINT = 1
    AND is_read = 1 THEN 'newest_reads'
    ELSE 'other'
  END AS why,
  length,
  size,
  tool_name,
  kind,
  branch,
  is_error,
  is_newest,
  CASE
    WHEN newer <= %(file_read_keep)s::BIGINT THEN 1
    ELSE 0
  END AS is_among_reads,
  CASE
    WHEN %(terminal)s::BIGINT = 1
    AND is_terminal = 1
    AND at >= %(old_before)s::BIGINT THEN at
  END AS young_at
FROM told
ORDER BY seq
