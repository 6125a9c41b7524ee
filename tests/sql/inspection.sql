-- inspection.checks.METADATA_OF_TREE
SELECT sessions.tree_id,
  sessions.id,
  sessions.metadata
FROM sessions
WHERE sessions.tree_id = :tree_id

-- inspection.checks.STORED_KEYS
SELECT session_keys."key",
  session_keys.value
FROM session_keys
WHERE session_keys.tree_id = :tree_id
  AND session_keys.session_id = :session_id

-- inspection.checks.UNKNOWN_KINDS
SELECT tool_kinds.name,
  tool_kinds.kind
FROM tool_kinds
WHERE (
  tool_kinds.kind NOT IN (
    'terminal',
    'file_read',
    'file_edit',
    'search',
    'list',
    'todo',
    'other'
  )
)

-- inspection.dump.ALL_TREES
SELECT branches.tree_id
FROM branches
UNION
SELECT erasures.tree_id
FROM erasures
ORDER BY tree_id

-- inspection.dump.FILLED_TABLES
SELECT 'attachments'
WHERE EXISTS (
  SELECT *
  FROM attachments
  WHERE attachments.tree_id = :tree_id
)
UNION ALL
SELECT 'branches'
WHERE EXISTS (
  SELECT *
  FROM branches
  WHERE branches.tree_id = :tree_id
)
UNION ALL
SELECT 'erasures'
WHERE EXISTS (
  SELECT *
  FROM erasures
  WHERE erasures.tree_id = :tree_id
)
UNION ALL
SELECT 'head_moves'
WHERE EXISTS (
  SELECT *
  FROM head_moves
  WHERE head_moves.tree_id = :tree_id
)
UNION ALL
SELECT 'kept_usages'
WHERE EXISTS (
  SELECT *
  FROM kept_usages
  WHERE kept_usages.tree_id = :tree_id
)
UNION ALL
SELECT 'request_texts'
WHERE EXISTS (
  SELECT *
  FROM request_texts
  WHERE request_texts.tree_id = :tree_id
)
UNION ALL
SELECT 'requests'
WHERE EXISTS (
  SELECT *
  FROM requests
  WHERE requests.tree_id = :tree_id
)
UNION ALL
SELECT 'running_bills'
WHERE EXISTS (
  SELECT *
  FROM running_bills
  WHERE running_bills.tree_id = :tree_id
)
UNION ALL
SELECT 'session_keys'
WHERE EXISTS (
  SELECT *
  FROM session_keys
  WHERE session_keys.tree_id = :tree_id
)
UNION ALL
SELECT 'drafts'
WHERE EXISTS (
  SELECT *
  FROM drafts
  WHERE drafts.tree_id = :tree_id
)
UNION ALL
SELECT 'messages'
WHERE EXISTS (
  SELECT *
  FROM messages
  WHERE messages.tree_id = :tree_id
)
UNION ALL
SELECT 'sessions'
WHERE EXISTS (
  SELECT *
  FROM sessions
  WHERE sessions.tree_id = :tree_id
)
UNION ALL
SELECT 'summaries'
WHERE EXISTS (
  SELECT *
  FROM summaries
  WHERE summaries.tree_id = :tree_id
)
UNION ALL
SELECT 'usages'
WHERE EXISTS (
  SELECT *
  FROM usages
  WHERE usages.tree_id = :tree_id
)
UNION ALL
SELECT 'compaction_records'
WHERE EXISTS (
  SELECT *
  FROM compaction_records
  WHERE compaction_records.tree_id = :tree_id
)
UNION ALL
SELECT 'draft_pieces'
WHERE EXISTS (
  SELECT *
  FROM draft_pieces
  WHERE draft_pieces.tree_id = :tree_id
)
UNION ALL
SELECT 'message_attachments'
WHERE EXISTS (
  SELECT *
  FROM message_attachments
  WHERE message_attachments.tree_id = :tree_id
)
UNION ALL
SELECT 'message_facts'
WHERE EXISTS (
  SELECT *
  FROM message_facts
  WHERE message_facts.tree_id = :tree_id
)
UNION ALL
SELECT 'notes'
WHERE EXISTS (
  SELECT *
  FROM notes
  WHERE notes.tree_id = :tree_id
)
UNION ALL
SELECT 'redactions'
WHERE EXISTS (
  SELECT *
  FROM redactions
  WHERE redactions.tree_id = :tree_id
)
UNION ALL
SELECT 'tool_calls'
WHERE EXISTS (
  SELECT *
  FROM tool_calls
  WHERE tool_calls.tree_id = :tree_id
)
UNION ALL
SELECT 'tool_results'
WHERE EXISTS (
  SELECT *
  FROM tool_results
  WHERE tool_results.tree_id = :tree_id
)
UNION ALL
SELECT 'tool_result_paths'
WHERE EXISTS (
  SELECT *
  FROM tool_result_paths
  WHERE tool_result_paths.tree_id = :tree_id
)

-- inspection.dump.INSERT_ID
INSERT INTO session_ids (id, tree_id)
VALUES (:id, :tree_id)

-- inspection.dump.OWNER_TREES
SELECT sessions.tree_id
FROM sessions
WHERE sessions.owner = :owner
UNION
SELECT kept_usages.tree_id
FROM kept_usages
WHERE kept_usages.owner = :owner
ORDER BY tree_id

-- inspection.dump.STORED_TREE
SELECT branches.tree_id
FROM branches
WHERE branches.tree_id = :tree_id
UNION
SELECT erasures.tree_id
FROM erasures
WHERE erasures.tree_id = :tree_id

-- inspection.dump.TREE_OWNERS
SELECT sessions.id,
  sessions.owner
FROM sessions
WHERE sessions.tree_id = :tree_id

-- inspection.line_checks.BRANCH_END
SELECT b.tree_id,
  b.branch,
  b.parent_position,
  b.session_id,
  CASE
    WHEN s.head_branch = b.branch THEN s.head
    ELSE COALESCE(
      (
        SELECT MAX(m.from_position)
        FROM head_moves m
        WHERE m.tree_id = :tree_id
          AND m.session_id = b.session_id
          AND m.from_branch = b.branch
          AND m.kind <> 'fork'
      ),
      (
        SELECT kept
        FROM erasures e
        WHERE e.tree_id = :tree_id
          AND e.branch = b.branch
        ORDER BY erasure DESC
        LIMIT 1
      )
    )
  END,
  EXISTS (
    SELECT 1
    FROM erasures e
    WHERE e.tree_id = :tree_id
      AND e.branch = b.branch
      AND e.finished_at IS NULL
  ),
  CASE
    WHEN s.id IS NULL THEN o.project_root
    ELSE s.project_root
  END,
  o.fold_case
FROM branches b
LEFT JOIN sessions s ON s.tree_id = :tree_id
  AND s.id = b.session_id
LEFT JOIN sessions o ON o.tree_id = :tree_id
  AND o.id = (
    SELECT MIN(id)
    FROM sessions
    WHERE tree_id = :tree_id
  )
WHERE b.tree_id = :tree_id
  AND b.branch = :branch

-- inspection.line_checks.MESSAGE_PLACES
SELECT messages.tree_id,
  messages.branch,
  messages.seq
FROM messages
WHERE messages.message_id = :message_id

-- inspection.line_checks.RUN_QUERIES.1
SELECT messages.tree_id,
  messages.branch,
  messages.seq,
  messages.role,
  messages.name,
  messages.status,
  messages.tool_call_id,
  messages.created_at,
  messages.message_id,
  messages.extra,
  messages.content_form,
  messages.content,
  messages.stored_at,
  messages.wire_format,
  messages.digest
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
ORDER BY messages.tree_id,
  messages.branch,
  messages.seq

-- inspection.line_checks.RUN_QUERIES.2
SELECT tool_calls.tree_id,
  tool_calls.branch,
  tool_calls.seq,
  tool_calls.position,
  tool_calls.call_id,
  tool_calls.name,
  tool_calls.arguments_form,
  tool_calls.arguments,
  tool_calls.extra
FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq BETWEEN :first AND :last
ORDER BY tool_calls.tree_id,
  tool_calls.branch,
  tool_calls.seq,
  tool_calls.position

-- inspection.line_checks.RUN_QUERIES.3
SELECT tool_results.tree_id,
  tool_results.branch,
  tool_results.seq,
  tool_results.call_seq,
  tool_results.call_position,
  tool_results.tool_name,
  tool_results.at,
  tool_results.status,
  tool_results.exit_code,
  tool_results.has_stderr,
  tool_results.error_prefix,
  tool_results.looks_terminal,
  tool_results.length,
  tool_results.size,
  tool_results.paths_complete
FROM tool_results
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq BETWEEN :first AND :last
ORDER BY tool_results.tree_id,
  tool_results.branch,
  tool_results.seq

-- inspection.line_checks.RUN_QUERIES.4
SELECT tool_result_paths.tree_id,
  tool_result_paths.branch,
  tool_result_paths.seq,
  tool_result_paths.path,
  tool_result_paths.start_line,
  tool_result_paths.end_line,
  tool_result_paths.contiguous,
  tool_result_paths.mentions
FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = :branch
  AND tool_result_paths.seq BETWEEN :first AND :last
ORDER BY tool_result_paths.tree_id,
  tool_result_paths.branch,
  tool_result_paths.seq,
  tool_result_paths.path

-- inspection.line_checks.RUN_QUERIES.5
SELECT message_facts.tree_id,
  message_facts.branch,
  message_facts.seq,
  message_facts.role,
  message_facts.turn,
  message_facts.tokens,
  message_facts.tokens_through
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
ORDER BY message_facts.tree_id,
  message_facts.branch,
  message_facts.seq

-- inspection.line_checks.TREE_BRANCH_ENDS
SELECT b.tree_id,
  b.branch,
  b.parent_position,
  b.session_id,
  CASE
    WHEN s.head_branch = b.branch THEN s.head
    ELSE COALESCE(
      (
        SELECT MAX(m.from_position)
        FROM head_moves m
        WHERE m.tree_id = :tree_id
          AND m.session_id = b.session_id
          AND m.from_branch = b.branch
          AND m.kind <> 'fork'
      ),
      (
        SELECT kept
        FROM erasures e
        WHERE e.tree_id = :tree_id
          AND e.branch = b.branch
        ORDER BY erasure DESC
        LIMIT 1
      )
    )
  END,
  EXISTS (
    SELECT 1
    FROM erasures e
    WHERE e.tree_id = :tree_id
      AND e.branch = b.branch
      AND e.finished_at IS NULL
  ),
  CASE
    WHEN s.id IS NULL THEN o.project_root
    ELSE s.project_root
  END,
  o.fold_case
FROM branches b
LEFT JOIN sessions s ON s.tree_id = :tree_id
  AND s.id = b.session_id
LEFT JOIN sessions o ON o.tree_id = :tree_id
  AND o.id = (
    SELECT MIN(id)
    FROM sessions
    WHERE tree_id = :tree_id
  )
WHERE b.tree_id = :tree_id
ORDER BY b.branch

-- inspection.line_checks.TREE_STATE
SELECT sessions.id,
  sessions.revision
FROM sessions
WHERE sessions.tree_id = :tree_id
ORDER BY sessions.id

-- inspection.storage_use._FILE
SELECT file
FROM pragma_database_list
WHERE name = 'main'

-- inspection.transfer.ERASED_SESSIONS
SELECT DISTINCT erasures.tree_id,
  erasures.session_id
FROM erasures
ORDER BY erasures.tree_id,
  erasures.session_id

-- inspection.transfer.TREE_SESSIONS
SELECT sessions.id
FROM sessions
WHERE sessions.tree_id = :tree_id
ORDER BY sessions.id

-- inspection.usage_statistics.LINE_CALL_COUNT
WITH segments AS (
  WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
    SELECT branches.branch,
      branches.parent_branch,
      branches.parent_position + 1,
      :last
    FROM branches
    WHERE branches.tree_id = :tree_id
      AND branches.branch = :branch
    UNION ALL
    SELECT parents.branch,
      parents.parent_branch,
      parents.parent_position + 1,
      CASE
        WHEN walk.first <= :last THEN walk.first - 1
        ELSE :last
      END
    FROM walk
    JOIN branches AS parents ON parents.tree_id = :tree_id
      AND parents.branch = walk.parent_branch
    WHERE walk.first > :start
  )
  SELECT branch,
    CASE WHEN first < :start THEN :start ELSE first END AS first,
    last
  FROM walk
  WHERE CASE WHEN first < :start THEN :start ELSE first END <= last
)
SELECT count(*) AS count_1
FROM segments
JOIN tool_calls ON tool_calls.tree_id = :tree_id
  AND tool_calls.branch = segments.branch
  AND tool_calls.seq BETWEEN segments.first AND segments.last

-- inspection.usage_statistics.LINE_FILES
WITH segments AS (
  WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
    SELECT branches.branch,
      branches.parent_branch,
      branches.parent_position + 1,
      :last
    FROM branches
    WHERE branches.tree_id = :tree_id
      AND branches.branch = :branch
    UNION ALL
    SELECT parents.branch,
      parents.parent_branch,
      parents.parent_position + 1,
      CASE
        WHEN walk.first <= :last THEN walk.first - 1
        ELSE :last
      END
    FROM walk
    JOIN branches AS parents ON parents.tree_id = :tree_id
      AND parents.branch = walk.parent_branch
    WHERE walk.first > :start
  )
  SELECT branch,
    CASE WHEN first < :start THEN :start ELSE first END AS first,
    last
  FROM walk
  WHERE CASE WHEN first < :start THEN :start ELSE first END <= last
),
overrides AS MATERIALIZED (
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
  ) AS INTEGER
) DESC,
  tool_result_paths.path
LIMIT :limit OFFSET :param_1

-- inspection.usage_statistics.LINE_TOOLS
WITH segments AS (
  WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
    SELECT branches.branch,
      branches.parent_branch,
      branches.parent_position + 1,
      :last
    FROM branches
    WHERE branches.tree_id = :tree_id
      AND branches.branch = :branch
    UNION ALL
    SELECT parents.branch,
      parents.parent_branch,
      parents.parent_position + 1,
      CASE
        WHEN walk.first <= :last THEN walk.first - 1
        ELSE :last
      END
    FROM walk
    JOIN branches AS parents ON parents.tree_id = :tree_id
      AND parents.branch = walk.parent_branch
    WHERE walk.first > :start
  )
  SELECT branch,
    CASE WHEN first < :start THEN :start ELSE first END AS first,
    last
  FROM walk
  WHERE CASE WHEN first < :start THEN :start ELSE first END <= last
),
overrides AS MATERIALIZED (
  SELECT pairs."key" AS name,
    pairs.value AS kind
  FROM json_each(:kinds) AS pairs
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
    ) AS INTEGER
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
  ) AS INTEGER
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
    SELECT CAST(places.value AS INTEGER) AS value
    FROM json_each(:places) AS places
  )
ORDER BY tool_results.seq,
  tool_result_paths.path

-- inspection.usage_statistics.STORE_FILES
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

-- inspection.usage_statistics.STORE_TOOLS
WITH overrides AS MATERIALIZED (
  SELECT pairs."key" AS name,
    pairs.value AS kind
  FROM json_each(:kinds) AS pairs
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
    ) AS INTEGER
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
  ) AS INTEGER
) DESC,
  tool_results.tool_name

-- inspection.usage_statistics.STORE_TOTALS
SELECT (
  SELECT count(*) AS count_1
  FROM sessions
) AS sessions,
  (
    SELECT count(*) AS count_2
    FROM messages
  ) AS messages,
  (
    SELECT count(*) AS count_3
    FROM tool_calls
  ) AS tool_calls

