-- view.counts.CONTINUED_ANSWERS
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
in_order AS (
  SELECT message_facts.branch AS branch,
    message_facts.seq AS seq,
    message_facts.role AS role,
    lag(message_facts.role) OVER (ORDER BY message_facts.seq) AS role_before
  FROM segments
  JOIN message_facts ON message_facts.tree_id = :tree_id
    AND message_facts.branch = segments.branch
    AND message_facts.seq BETWEEN segments.first AND segments.last
)
SELECT in_order.seq
FROM in_order
JOIN messages ON messages.tree_id = :tree_id
  AND messages.branch = in_order.branch
  AND messages.seq = in_order.seq
WHERE in_order.role = 'assistant'
  AND in_order.role_before = 'assistant'
  AND messages.wire_format = 'responses'
ORDER BY in_order.seq

-- view.counts.OWN_BRANCHES
SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
  AND (
    EXISTS (
      SELECT *
      FROM branches AS theirs,
        sessions
      WHERE theirs.tree_id = :tree_id
        AND theirs.branch = branches.branch
        AND sessions.tree_id = theirs.tree_id
        AND sessions.id = theirs.session_id
        AND sessions.owner IS NOT DISTINCT FROM :owner COLLATE "C"
    )
  )

-- view.counts.TOKEN_ESTIMATES
SELECT COALESCE(
  CAST(
    json_object_agg(message_facts.seq, message_facts.tokens) AS text
  ),
  '{}'
) AS anon_1
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last

-- view.line_rows.VISIBLE_MESSAGES
SELECT messages.seq,
  messages.role,
  messages.name,
  messages.status,
  messages.tool_call_id,
  messages.created_at,
  messages.message_id,
  messages.extra,
  messages.content_form,
  CASE
    WHEN (
      messages.seq IN (
        SELECT CAST(replaced.value AS BIGINT) AS value
        FROM json_array_elements_text(CAST(:replaced AS json)) AS replaced
      )
    ) THEN NULL
    ELSE messages.content
  END AS anon_1
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
ORDER BY messages.seq

-- view.placeholders.RESULT_CONTENTS
SELECT messages.seq,
  messages.content_form,
  messages.content
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
  AND messages.seq IN (
    SELECT CAST(wanted.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(:wanted AS json)) AS wanted
  )
ORDER BY messages.seq

-- view.read_files.READ_PATHS
SELECT tool_result_paths.seq,
  tool_result_paths.path
FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = :branch
  AND tool_result_paths.seq BETWEEN :first AND :last
  AND tool_result_paths.seq IN (
    SELECT CAST(places.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(:places AS json)) AS places
  )
ORDER BY tool_result_paths.seq,
  tool_result_paths.path

-- view.rules.CLEARABLE_BORDER
WITH segments AS MATERIALIZED (
  SELECT CAST(value ->> 0 AS BIGINT) AS branch,
    CAST(value ->> 1 AS BIGINT) AS first,
    CAST(value ->> 2 AS BIGINT) AS last
  FROM json_array_elements(CAST(:runs AS json))
),
newest_first AS (
  SELECT tool_results.seq,
    ROW_NUMBER() OVER (ORDER BY tool_results.seq DESC) AS nth
  FROM segments CROSS
  JOIN tool_results
  WHERE tool_results.tree_id = :tree_id
    AND tool_results.branch = segments.branch
    AND tool_results.seq BETWEEN segments.first AND segments.last
    AND (tool_results.call_seq >= :start OR :adopt = 1)
    AND tool_results.seq < :judged_before
    AND CASE
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
    END = 0
)
SELECT seq
FROM newest_first
WHERE nth = :clear_keep + 1

-- view.rules.COVERED_READS
WITH segments AS MATERIALIZED (
  SELECT CAST(value ->> 0 AS BIGINT) AS branch,
    CAST(value ->> 1 AS BIGINT) AS first,
    CAST(value ->> 2 AS BIGINT) AS last
  FROM json_array_elements(CAST(:runs AS json))
),
overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(:kinds AS json)) AS pairs
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

-- view.rules.RESULT_VERDICTS
WITH segments AS MATERIALIZED (
  SELECT CAST(value ->> 0 AS BIGINT) AS branch,
    CAST(value ->> 1 AS BIGINT) AS first,
    CAST(value ->> 2 AS BIGINT) AS last
  FROM json_array_elements(CAST(:runs AS json))
),
overrides AS MATERIALIZED (
  SELECT pairs.key AS name,
    pairs.value AS kind
  FROM json_each_text(CAST(:kinds AS json)) AS pairs
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
),
slots AS (
  SELECT seq,
    ROW_NUMBER() OVER (ORDER BY at DESC, seq DESC) AS nth
  FROM judged
  WHERE :terminal = 1
    AND at IS NOT NULL
    AND is_redacted = 0
    AND seq < :judged_before
    AND (is_error = 0 OR :errors_take_slots = 1)
),
newest AS MATERIALIZED (
  SELECT seq
  FROM slots
  WHERE nth <= :terminal_keep
),
reads AS (
  SELECT judged.seq,
    at,
    path,
    CASE WHEN :dedupe = 1 THEN 1 ELSE mentions END AS mentions
  FROM judged
  JOIN tool_result_paths ON tool_result_paths.tree_id = :tree_id
    AND tool_result_paths.branch = judged.branch
    AND tool_result_paths.seq = judged.seq
  WHERE :file_read = 1
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
    MIN(CASE WHEN nth <= :file_read_keep THEN seq END) OVER (PARTITION BY path) AS oldest_kept
  FROM counted
),
files AS (
  SELECT seq,
    CASE WHEN :batch_any = 1 THEN MAX(nth) ELSE MIN(nth) END AS nth,
    MIN(nth - mentions) AS newer,
    MAX(
      CASE
        WHEN nth <= :file_read_keep
        AND farthest > :file_read_keep THEN 1
        ELSE 0
      END
    ) AS is_pointed_to,
    MAX(
      CASE
        WHEN :any_tool = 1
        AND oldest_kept < :clear_before
        AND oldest_kept < :protected_from THEN 1
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
    WHEN :terminal = 1
    AND is_terminal = 1
    AND is_error = 0
    AND is_pending = 0
    AND at IS NOT NULL
    AND seq < :protected_from
    AND is_newest = 0
    AND at < :terminal_before
    AND length > 0
    AND (
      :min_saving = 0
      OR length - :terminal_placeholder >= :min_saving
    ) THEN 'terminal'
    WHEN :file_read = 1
    AND is_read = 1
    AND is_redacted = 0
    AND is_error = 0
    AND is_pending = 0
    AND at IS NOT NULL
    AND seq < :protected_from
    AND nth_read > :file_read_keep
    AND (:batch_any = 1 OR paths_complete = 1)
    AND (
      :min_saving = 0
      OR length - :file_read_placeholder >= :min_saving
    )
    AND points_to_cleared = 0 THEN 'file_read'
    WHEN :any_tool = 1
    AND is_error = 0
    AND is_pending = 0
    AND seq < :clear_before
    AND seq < :protected_from THEN 'any_tool'
    WHEN :tool_output = 1
    AND seq < :running_from
    AND is_pending = 0
    AND (is_error = 0 OR is_terminal = 1 OR :errors_stay = 0)
    AND COALESCE(is_pointed_to, 0) = 0 THEN 'tool_output'
    WHEN is_error = 1 THEN 'error'
    WHEN is_pending = 1 THEN 'pending'
    WHEN :any_tool = 1
    AND seq >= :clear_before THEN 'recent'
    WHEN at IS NULL THEN 'undated'
    WHEN seq >= :protected_from THEN 'current_turn'
    WHEN :terminal = 1
    AND is_terminal = 1
    AND is_newest = 1 THEN 'newest'
    WHEN :terminal = 1
    AND is_terminal = 1
    AND at >= :terminal_before THEN 'young'
    WHEN (:terminal = 1 AND is_terminal = 1)
    OR (
      :file_read = 1
      AND is_read = 1
      AND nth_read > :file_read_keep
      AND (:batch_any = 1 OR paths_complete = 1)
    ) THEN 'small'
    WHEN :file_read = 1
    AND is_read = 1
    AND nth_read IS NULL THEN 'no_path'
    WHEN :file_read = 1
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
  CASE WHEN newer <= :file_read_keep THEN 1 ELSE 0 END AS is_among_reads,
  CASE
    WHEN :terminal = 1
    AND is_terminal = 1
    AND at >= :terminal_before THEN at
  END AS young_at
FROM told
ORDER BY seq

-- view.visible_set.ACTIVE_SUMMARY_TEXTS
SELECT summaries.summary,
  summaries.body,
  summaries.facts,
  summaries.notice
FROM summaries
WHERE summaries.tree_id = :tree_id
  AND summaries.summary IN (
    SELECT CAST(numbers.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(:numbers AS json)) AS numbers
  )

-- view.visible_set.RECORDS
SELECT compaction_records.compaction AS id,
  compaction_records.kind,
  compaction_records.outcome,
  compaction_records.reason,
  compaction_records.policy,
  compaction_records.session_id,
  compaction_records.head,
  compaction_records.hidden_first,
  compaction_records.hidden_last,
  compaction_records.first_kept,
  compaction_records.pinned,
  compaction_records.cleared,
  compaction_records.undoes,
  compaction_records.messages_before,
  compaction_records.messages_after,
  compaction_records.tokens_before,
  compaction_records.tokens_after,
  compaction_records.created_at,
  compaction_records.error,
  compaction_records.error_kind,
  compaction_records.summary AS summary_number,
  summaries.first AS stands_from
FROM compaction_records
LEFT OUTER JOIN summaries ON summaries.tree_id = :tree_id
  AND summaries.summary = compaction_records.summary
WHERE compaction_records.tree_id = :tree_id
  AND compaction_records.compaction IN (
    SELECT CAST(numbers.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(:numbers AS json)) AS numbers
  )

-- view.visible_set.RECORD_OUTCOMES
WITH line AS (
  SELECT branches.branch,
    :last AS last,
    :newest AS newest
  FROM branches
  WHERE branches.tree_id = :tree_id
    AND branches.branch = :branch
  UNION ALL
  SELECT above.ancestor,
    LEAST(above.last, :last),
    below.records_seen
  FROM (
    SELECT a.ancestor,
      a.last,
      a.next_branch
    FROM branches
    JOIN ancestors AS a ON a.tree_id = :tree_id
      AND a.branch = branches.branch
      AND a.level = 0
    WHERE branches.tree_id = :tree_id
      AND branches.branch = :branch
    UNION ALL
    SELECT a.ancestor,
      a.last,
      a.next_branch
    FROM branches
    JOIN ancestors AS b ON b.tree_id = :tree_id
      AND b.branch = branches.branch
      AND b.level = 1
    JOIN ancestors AS a ON a.tree_id = :tree_id
      AND a.branch = b.ancestor
      AND a.level = 0
    WHERE branches.tree_id = :tree_id
      AND branches.branch = :branch
    UNION ALL
    SELECT a.ancestor,
      a.last,
      a.next_branch
    FROM branches
    JOIN ancestors AS c ON c.tree_id = :tree_id
      AND c.branch = branches.branch
      AND c.level = 2
    JOIN ancestors AS b ON b.tree_id = :tree_id
      AND b.branch = c.ancestor
      AND b.level = 1
    JOIN ancestors AS a ON a.tree_id = :tree_id
      AND a.branch = b.ancestor
      AND a.level = 0
    WHERE branches.tree_id = :tree_id
      AND branches.branch = :branch
  ) AS above
  JOIN LATERAL (
    SELECT *
    FROM branches AS below
    WHERE below.tree_id = :tree_id
      AND below.branch = above.next_branch OFFSET 0
  ) AS below ON true
)
SELECT compaction_records.compaction,
  compaction_records.outcome
FROM line
JOIN compaction_records ON compaction_records.tree_id = :tree_id
  AND compaction_records.branch = line.branch
  AND compaction_records.head <= line.last
  AND compaction_records.compaction <= line.newest
ORDER BY compaction_records.compaction

-- view.visible_set.REPORTED_SUMMARY_TEXTS
SELECT summaries.summary,
  summaries.title,
  summaries.body,
  summaries.key_actions,
  summaries.file_changes
FROM summaries
WHERE summaries.tree_id = :tree_id
  AND summaries.summary IN (
    SELECT CAST(numbers.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(:numbers AS json)) AS numbers
  )

