WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
  SELECT branch,
    parent_branch,
    parent_position + 1,
    %(last)s::BIGINT
  FROM branches
  WHERE tree_id = %(tree_id)s::BIGINT
    AND branch = %(branch)s::BIGINT
  UNION ALL
  SELECT parents.branch,
    parents.parent_branch,
    parents.parent_position + 1,
    CASE
      WHEN walk.first <= %(last)s::BIGINT THEN walk.first - 1
      ELSE %(last)s::BIGINT
    END
  FROM branches AS parents
  JOIN walk ON parents.branch = walk.parent_branch
  WHERE parents.tree_id = %(tree_id)s::BIGINT
    AND walk.first > %(start)s::BIGINT
),
segments AS (
  SELECT branch,
    CASE
      WHEN first < %(start)s::BIGINT THEN %(start)s::BIGINT
      ELSE first
    END AS first,
    last
  FROM walk
  WHERE CASE
    WHEN first < %(start)s::BIGINT THEN %(start)s::BIGINT
    ELSE first
  END <= last
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
    CASE
      WHEN %(sniff)s::BIGINT = 1
      OR COALESCE(tool_results.tool_name, '') = '' THEN tool_results.looks_terminal
      WHEN tool_results.tool_name IN (
        SELECT name
        FROM tool_kinds
        WHERE kind = 'terminal'
          AND name NOT IN (
            SELECT pairs.key
            FROM json_each_text(CAST(%(kinds)s::VARCHAR AS json)) AS pairs
          )
        UNION ALL
        SELECT pairs.key
        FROM json_each_text(CAST(%(kinds)s::VARCHAR AS json)) AS pairs
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
            FROM json_each_text(CAST(%(kinds)s::VARCHAR AS json)) AS pairs
          )
        UNION ALL
        SELECT pairs.key
        FROM json_each_text(CAST(%(kinds)s::VARCHAR AS json)) AS pairs
        WHERE pairs.value = 'file_read'
      ) THEN 1
      ELSE 0
    END AS reads
  FROM segments
  JOIN tool_results ON tool_results.tree_id = %(tree_id)s::BIGINT
    AND tool_results.branch = segments.branch
    AND tool_results.seq BETWEEN segments.first AND segments.last
  WHERE tool_results.seq >= %(start)s::BIGINT
    AND (
      tool_results.call_seq >= %(start)s::BIGINT
      OR %(adopt)s::BIGINT = 1
    )
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
told AS (
  SELECT judged.*,
    CASE
      WHEN at < %(slot_at)s::BIGINT
      OR (at = %(slot_at)s::BIGINT AND seq <= %(slot_seq)s::BIGINT) THEN 0
      ELSE 1
    END AS is_newest
  FROM judged
),
weighed AS (
  SELECT branch,
    seq,
    at,
    CASE
      WHEN %(sniff)s::BIGINT = 1
      AND %(terminal)s::BIGINT = 1
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
      ) THEN NULL
      WHEN %(file_read)s::BIGINT = 1
      AND seq < %(protected_from)s::BIGINT
      AND (%(batch_any)s::BIGINT = 1 OR paths_complete = 1)
      AND (
        %(min_saving)s::BIGINT = 0
        OR length - %(file_read_placeholder)s::BIGINT >= %(min_saving)s::BIGINT
      ) THEN (11 * size - length + 39) / 40 - %(file_read_tokens)s::BIGINT
    END AS saving
  FROM told
  WHERE is_read = 1
    AND is_error = 0
    AND is_pending = 0
    AND at IS NOT NULL
),
reads AS (
  SELECT weighed.seq,
    at,
    saving,
    path,
    CASE
      WHEN path IS NULL THEN 0
      WHEN %(dedupe)s::BIGINT = 1 THEN 1
      ELSE mentions
    END AS mentions
  FROM weighed
  LEFT JOIN tool_result_paths ON tool_result_paths.tree_id = %(tree_id)s::BIGINT
    AND tool_result_paths.branch = weighed.branch
    AND tool_result_paths.seq = weighed.seq
),
counted AS (
  SELECT seq,
    saving,
    SUM(mentions) OVER (
      PARTITION BY path
      ORDER BY at DESC,
        seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS nth
  FROM reads
),
stale_reads AS (
  SELECT seq,
    MAX(saving) AS saving
  FROM counted
  GROUP BY seq HAVING CASE
    WHEN %(batch_any)s::BIGINT = 1 THEN MAX(nth)
    ELSE MIN(nth)
  END > %(file_read_keep)s::BIGINT
)
SELECT seq,
  CAST(saving AS BIGINT) AS saving
FROM stale_reads
WHERE saving IS NOT NULL
