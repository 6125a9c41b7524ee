-- history.ancestry.ANCESTOR_BREACHES
SELECT tree_id,
  branch,
  level,
  ancestor
FROM (
  SELECT *
  FROM (
    WITH added AS (
      SELECT b.tree_id,
        b.branch,
        b.parent_branch,
        p.parent_position + 1 AS first,
        b.parent_position AS last,
        CASE
          WHEN COUNT(a.level) FILTER (WHERE a.level = 0) < 16 THEN 0
          WHEN COUNT(a.level) FILTER (WHERE a.level = 1) < 16 THEN 1
          ELSE 2
        END AS carry
      FROM branches AS b
      JOIN branches AS p ON p.tree_id = b.tree_id
        AND p.branch = b.parent_branch
      LEFT JOIN ancestors AS a ON a.tree_id = b.tree_id
        AND a.branch = b.parent_branch
      GROUP BY b.tree_id,
        b.branch,
        b.parent_branch,
        p.parent_position,
        b.parent_position
    )
    SELECT n.tree_id,
      n.branch,
      a.level,
      a.ancestor,
      a.first,
      a.last,
      a.next_branch
    FROM added AS n
    JOIN ancestors AS a ON a.tree_id = n.tree_id
      AND a.branch = n.parent_branch
    WHERE a.level >= n.carry
    UNION ALL
    SELECT n.tree_id,
      n.branch,
      0,
      n.parent_branch,
      n.first,
      n.last,
      n.branch
    FROM added AS n
    UNION ALL
    SELECT n.tree_id,
      n.branch,
      a.level + 1,
      n.parent_branch,
      MIN(a.first),
      MAX(a.last),
      n.branch
    FROM added AS n
    JOIN ancestors AS a ON a.tree_id = n.tree_id
      AND a.branch = n.parent_branch
    WHERE a.level < n.carry
    GROUP BY n.tree_id,
      n.branch,
      n.parent_branch,
      a.level
  ) AS due
  UNION ALL
  SELECT tree_id,
    branch,
    level,
    ancestor,
    first,
    last,
    next_branch
  FROM ancestors
) AS told
GROUP BY tree_id,
  branch,
  level,
  ancestor,
  first,
  last,
  next_branch HAVING COUNT(*) <> 2
ORDER BY tree_id,
  branch,
  level,
  ancestor

-- history.ancestry.UNWRITTEN_BRANCHES
SELECT b.branch
FROM branches AS b
WHERE b.tree_id = :tree_id
  AND b.parent_branch IS NOT NULL
  AND NOT EXISTS (
    SELECT 1
    FROM ancestors AS a
    WHERE a.tree_id = :tree_id
      AND a.branch = b.branch
  )
ORDER BY b.branch

-- history.ancestry.WRITE_ANCESTORS
INSERT INTO ancestors (tree_id, branch, level, ancestor, first, last, next_branch) WITH added AS (
  SELECT b.tree_id,
    b.branch,
    b.parent_branch,
    p.parent_position + 1 AS first,
    b.parent_position AS last,
    CASE
      WHEN COUNT(a.level) FILTER (WHERE a.level = 0) < 16 THEN 0
      WHEN COUNT(a.level) FILTER (WHERE a.level = 1) < 16 THEN 1
      ELSE 2
    END AS carry
  FROM branches AS b
  JOIN branches AS p ON p.tree_id = b.tree_id
    AND p.branch = b.parent_branch
    AND p.tree_id = :tree_id
  LEFT JOIN ancestors AS a ON a.tree_id = b.tree_id
    AND a.branch = b.parent_branch
    AND a.tree_id = :tree_id
  WHERE b.tree_id = :tree_id
    AND b.branch = :branch
  GROUP BY b.tree_id,
    b.branch,
    b.parent_branch,
    p.parent_position,
    b.parent_position
)
SELECT n.tree_id,
  n.branch,
  a.level,
  a.ancestor,
  a.first,
  a.last,
  a.next_branch
FROM added AS n
JOIN ancestors AS a ON a.tree_id = n.tree_id
  AND a.branch = n.parent_branch
  AND a.tree_id = :tree_id
WHERE a.level >= n.carry
UNION ALL
SELECT n.tree_id,
  n.branch,
  0,
  n.parent_branch,
  n.first,
  n.last,
  n.branch
FROM added AS n
UNION ALL
SELECT n.tree_id,
  n.branch,
  a.level + 1,
  n.parent_branch,
  MIN(a.first),
  MAX(a.last),
  n.branch
FROM added AS n
JOIN ancestors AS a ON a.tree_id = n.tree_id
  AND a.branch = n.parent_branch
  AND a.tree_id = :tree_id
WHERE a.level < n.carry
GROUP BY n.tree_id,
  n.branch,
  n.parent_branch,
  a.level

-- history.append.INSERT_CALLS
INSERT INTO tool_calls (
  tree_id,
  branch,
  seq,
  position,
  call_id,
  name,
  arguments_form,
  arguments,
  extra
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :position,
  :call_id,
  :name,
  :arguments_form,
  :arguments,
  :extra
)

-- history.append.INSERT_MESSAGES
INSERT INTO messages (
  tree_id,
  branch,
  seq,
  role,
  name,
  status,
  tool_call_id,
  created_at,
  message_id,
  extra,
  content_form,
  content,
  stored_at,
  digest,
  wire_format
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :role,
  :name,
  :status,
  :tool_call_id,
  :created_at,
  :message_id,
  :extra,
  :content_form,
  :content,
  :stored_at,
  :digest,
  :wire_format
)

-- history.append.MESSAGE_LOCATIONS
SELECT messages.message_id,
  messages.branch,
  messages.seq,
  messages.digest,
  messages.stored_at
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.message_id IN (
    SELECT value
    FROM json_each(:ids)
  )

-- history.append.MOVE_HEAD
UPDATE sessions
SET head=:to,
  updated_at=:now,
  revision=:revision,
  updated_second=(:now / 1000)
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id

-- history.append.MOVE_HEAD_WITHIN_SECOND
UPDATE sessions
SET head=:to,
  updated_at=:now,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id

-- history.attachments.ATTACHED_CALLS
SELECT DISTINCT message_attachments.seq
FROM message_attachments
WHERE message_attachments.tree_id = :tree_id
  AND message_attachments.branch = :branch
  AND message_attachments.seq BETWEEN :first AND :last
  AND message_attachments.position >= 8589934592

-- history.attachments.ATTACHMENT_PLACES
SELECT message_attachments.seq,
  message_attachments.position,
  message_attachments.encoding,
  message_attachments.digest,
  attachments.data
FROM message_attachments
JOIN attachments ON attachments.digest = message_attachments.digest
WHERE attachments.tree_id = :tree_id
  AND message_attachments.tree_id = :tree_id
  AND message_attachments.branch = :branch
  AND message_attachments.seq IN (
    SELECT CAST(wanted.value AS INTEGER) AS value
    FROM json_each(:wanted) AS wanted
  )
  AND message_attachments.position BETWEEN :least_position AND :most_position
ORDER BY message_attachments.seq,
  message_attachments.position

-- history.attachments.DELETE_ATTACHMENT_PLACES
DELETE FROM message_attachments
WHERE message_attachments.tree_id = :tree_id
  AND message_attachments.branch = :branch
  AND message_attachments.seq = :seq

-- history.attachments.DELETE_UNUSED_ATTACHMENTS
DELETE FROM attachments
WHERE attachments.tree_id = :tree_id
  AND attachments.digest IN (
    SELECT attachments.digest
    FROM attachments
    WHERE attachments.tree_id = :tree_id
      AND NOT (
        EXISTS (
          SELECT *
          FROM message_attachments
          WHERE message_attachments.tree_id = :tree_id
            AND message_attachments.digest = attachments.digest
        )
      )
    LIMIT 8 OFFSET :param_1
  )

-- history.attachments.INSERT_ATTACHMENT
INSERT INTO attachments (tree_id, digest, data)
VALUES (:tree_id, :digest, :data)

-- history.attachments.INSERT_ATTACHMENT_PLACES
INSERT INTO message_attachments (tree_id, branch, seq, position, encoding, digest)
VALUES (:tree_id, :branch, :seq, :position, :encoding, :digest)

-- history.attachments.KNOWN_ATTACHMENT
SELECT 1
FROM attachments
WHERE attachments.tree_id = :tree_id
  AND attachments.digest = :digest

-- history.branch_erasure.DELETE_LEFT_ROWS.1
DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft IN (
    SELECT drafts.draft
    FROM drafts
    WHERE drafts.tree_id = :tree_id
      AND drafts.session_id = :session_id
      AND (
        drafts.branch IN (
          SELECT CAST("left".value AS INTEGER) AS value
          FROM json_each(:left) AS "left"
        )
        OR (
          EXISTS (
            SELECT *
            FROM erasures
            WHERE erasures.tree_id = :tree_id
              AND erasures.erasure = :erasure
              AND erasures.branch = drafts.branch
              AND drafts.head > erasures.kept
          )
        )
      )
  )

-- history.branch_erasure.DELETE_LEFT_ROWS.2
DELETE FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id
  AND (
    drafts.branch IN (
      SELECT CAST("left".value AS INTEGER) AS value
      FROM json_each(:left) AS "left"
    )
    OR (
      EXISTS (
        SELECT *
        FROM erasures
        WHERE erasures.tree_id = :tree_id
          AND erasures.erasure = :erasure
          AND erasures.branch = drafts.branch
          AND drafts.head > erasures.kept
      )
    )
  )

-- history.branch_erasure.DELETE_LEFT_ROWS.3
DELETE FROM running_bills
WHERE running_bills.tree_id = :tree_id
  AND running_bills.session_id = :session_id
  AND (
    running_bills.branch IN (
      SELECT CAST("left".value AS INTEGER) AS value
      FROM json_each(:left) AS "left"
    )
    OR (
      EXISTS (
        SELECT *
        FROM erasures
        WHERE erasures.tree_id = :tree_id
          AND erasures.erasure = :erasure
          AND erasures.branch = running_bills.branch
          AND running_bills.seq > erasures.kept
      )
    )
  )

-- history.branch_erasure.DELETE_MOVES
DELETE FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.session_id = :session_id
  AND head_moves.kind != 'fork'

-- history.branch_erasure.DISOWN_LEFT_BRANCHES
UPDATE branches
SET session_id=:session_id
WHERE branches.tree_id = :tree
  AND branches.session_id = :owner
  AND branches.branch IN (
    SELECT CAST("left".value AS INTEGER) AS value
    FROM json_each(:left) AS "left"
  )

-- history.branch_erasure.SET_NO_UNDO
UPDATE sessions
SET last_rewind=NULL,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id

-- history.draft_leases.END_LEASE
UPDATE drafts
SET writer=NULL,
  live_until=NULL
WHERE drafts.tree_id = :tree_id
  AND drafts.draft = :draft

-- history.draft_leases.RENEW_LEASE
UPDATE drafts
SET live_until=(
  CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + 4000
)
WHERE drafts.tree_id = :tree_id
  AND drafts.draft = :draft

-- history.draft_leases.WRITTEN_DRAFTS
SELECT drafts.draft,
  drafts.writer,
  drafts.live_until - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS "left"
FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id
  AND drafts.writer IS NOT NULL

-- history.draft_leases.WRITTEN_MOMENTS
SELECT drafts.draft,
  drafts.writer,
  drafts.live_until - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS "left",
  coalesce(
    (
      SELECT max(draft_pieces.at) AS max_1
      FROM draft_pieces
      WHERE draft_pieces.tree_id = drafts.tree_id
        AND draft_pieces.draft = drafts.draft
    ),
    drafts.at
  ) AS at
FROM drafts
WHERE drafts.writer IS NOT NULL

-- history.drafts.ALL_DRAFTS
SELECT drafts.tree_id,
  drafts.draft,
  drafts.session_id,
  drafts.branch,
  drafts.head,
  drafts.at,
  drafts.message,
  drafts.wire_format,
  drafts.writer,
  drafts.usage,
  drafts.live_until - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS "left"
FROM drafts

-- history.drafts.DELETE_DRAFT.1
DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft = :draft

-- history.drafts.DELETE_DRAFT.2
DELETE FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.draft = :draft

-- history.drafts.DELETE_PIECES_FROM
DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft = :draft
  AND draft_pieces.piece >= :first

-- history.drafts.DRAFT
SELECT drafts.tree_id,
  drafts.draft,
  drafts.session_id,
  drafts.branch,
  drafts.head,
  drafts.at,
  drafts.message,
  drafts.wire_format,
  drafts.writer,
  drafts.usage,
  drafts.live_until - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS "left"
FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.draft = :draft

-- history.drafts.DRAFT_PIECES
SELECT draft_pieces.at,
  draft_pieces."key",
  draft_pieces.text
FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft = :draft
ORDER BY draft_pieces.piece

-- history.drafts.DRAFT_STATES
SELECT drafts.draft,
  drafts.writer,
  drafts.live_until - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS "left",
  drafts.at,
  (
    SELECT coalesce(max(draft_pieces.piece), 0) AS coalesce_1
    FROM draft_pieces
    WHERE draft_pieces.tree_id = :tree_id
      AND draft_pieces.draft = drafts.draft
  ) AS anon_1
FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id
ORDER BY drafts.draft

-- history.drafts.INSERT_DRAFT
INSERT INTO drafts (
  tree_id,
  draft,
  session_id,
  branch,
  head,
  at,
  message,
  wire_format,
  writer,
  usage,
  sealed
)
VALUES (
  :tree_id,
  :draft,
  :session_id,
  :branch,
  :head,
  :at,
  :message,
  :wire_format,
  :writer,
  :usage,
  :sealed
)

-- history.drafts.INSERT_PIECES
INSERT INTO draft_pieces (tree_id, draft, piece, at, "key", text, sealed)
VALUES (:tree_id, :draft, :piece, :at, :key, :text, :sealed)

-- history.drafts.OWNER_DRAFTS
SELECT drafts.tree_id,
  drafts.draft,
  drafts.session_id,
  drafts.branch,
  drafts.head,
  drafts.at,
  drafts.message,
  drafts.wire_format,
  drafts.writer,
  drafts.usage,
  drafts.live_until - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS "left"
FROM drafts
JOIN sessions ON sessions.tree_id = drafts.tree_id
  AND sessions.id = drafts.session_id
  AND sessions.owner = :owner

-- history.drafts.PIECES_AFTER
SELECT draft_pieces.piece,
  draft_pieces."key",
  draft_pieces.text
FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft = :draft
  AND draft_pieces.piece > :after
ORDER BY draft_pieces.piece

-- history.drafts.SESSION_DRAFTS
SELECT drafts.tree_id,
  drafts.draft,
  drafts.session_id,
  drafts.branch,
  drafts.head,
  drafts.at,
  drafts.message,
  drafts.wire_format,
  drafts.writer,
  drafts.usage,
  drafts.live_until - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS "left"
FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id

-- history.drafts.SET_DRAFT_MESSAGE
UPDATE drafts
SET at=:now,
  message=:given
WHERE drafts.tree_id = :tree
  AND drafts.draft = :of

-- history.drafts.SET_DRAFT_USAGE
UPDATE drafts
SET usage=:told
WHERE drafts.tree_id = :tree_id
  AND drafts.draft = :draft

-- history.erasure.BRANCH_OWNERS
SELECT branches.branch,
  branches.parent_branch,
  branches.parent_position,
  branches.session_id
FROM branches
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch DESC

-- history.erasure.DELETE_RECORDS
DELETE FROM compaction_records
WHERE compaction_records.tree_id = :tree_id
  AND compaction_records.branch = :branch
  AND compaction_records.head > :kept

-- history.erasure.DELETE_REDACTIONS
DELETE FROM redactions
WHERE redactions.tree_id = :tree_id
  AND redactions.branch = :branch
  AND redactions.seq > :kept

-- history.erasure.DELETE_SESSION.1
DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft IN (
    SELECT drafts.draft
    FROM drafts
    WHERE drafts.tree_id = :tree_id
      AND drafts.session_id = :session_id
  )

-- history.erasure.DELETE_SESSION.2
DELETE FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id

-- history.erasure.DELETE_SESSION.3
DELETE FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.session_id = :session_id

-- history.erasure.DELETE_SESSION.4
DELETE FROM running_bills
WHERE running_bills.tree_id = :tree_id
  AND running_bills.session_id = :session_id

-- history.erasure.DELETE_SESSION.5
DELETE FROM session_keys
WHERE session_keys.tree_id = :tree_id
  AND session_keys.session_id = :session_id

-- history.erasure.DELETE_SESSION.6
DELETE FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.erasure.DELETE_SESSION.7
DELETE FROM session_ids
WHERE session_ids.tree_id = :tree_id
  AND session_ids.id = :session_id

-- history.erasure.DISOWN_BRANCHES
UPDATE branches
SET session_id=:session_id
WHERE branches.tree_id = :tree
  AND branches.session_id = :owner

-- history.erasure.ERASABLE_END
SELECT (
  SELECT max(messages.seq) AS max_1
  FROM messages
  WHERE messages.tree_id = :tree_id
    AND messages.branch = :branch
) AS anon_1,
  (
    SELECT min(erasures.kept) AS min_1
    FROM erasures
    WHERE erasures.tree_id = :tree_id
      AND erasures.branch = :branch
      AND erasures.finished_at IS NULL
  ) AS anon_2

-- history.erasure.ERASURE
SELECT erasures.session_id,
  CAST(sum(erasures.messages) AS INTEGER) AS removed,
  CAST(sum(erasures.kept_messages) AS INTEGER) AS kept,
  max(erasures.newest_copy) AS newest_copy,
  count(*) - count(erasures.finished_at) AS unfinished,
  count(*) - count(erasures.purged_at) AS unpurged
FROM erasures
WHERE erasures.tree_id = :tree_id
  AND erasures.erasure = :erasure
GROUP BY erasures.tree_id,
  erasures.erasure,
  erasures.session_id
ORDER BY min(erasures.started_at),
  erasures.session_id

-- history.erasure.ERASURES
SELECT erasures.session_id,
  CAST(sum(erasures.messages) AS INTEGER) AS removed,
  CAST(sum(erasures.kept_messages) AS INTEGER) AS kept,
  max(erasures.newest_copy) AS newest_copy,
  count(*) - count(erasures.finished_at) AS unfinished,
  count(*) - count(erasures.purged_at) AS unpurged
FROM erasures
GROUP BY erasures.tree_id,
  erasures.erasure,
  erasures.session_id
ORDER BY min(erasures.started_at),
  erasures.session_id

-- history.erasure.LOWER_SEEN_RECORDS
UPDATE branches
SET records_seen=(
  SELECT coalesce(max(compaction_records.compaction), 0) AS coalesce_1
  FROM compaction_records
  WHERE compaction_records.tree_id = :tree
)
WHERE branches.tree_id = :tree
  AND branches.records_seen > (
    SELECT coalesce(max(compaction_records.compaction), 0) AS coalesce_1
    FROM compaction_records
    WHERE compaction_records.tree_id = :tree
  )

-- history.erasure.LOWER_SOURCE_RECORDS
UPDATE head_moves
SET source_record=(
  SELECT coalesce(max(compaction_records.compaction), 0) AS coalesce_1
  FROM compaction_records
  WHERE compaction_records.tree_id = :tree
)
WHERE head_moves.tree_id = :tree
  AND head_moves.source_record > (
    SELECT coalesce(max(compaction_records.compaction), 0) AS coalesce_1
    FROM compaction_records
    WHERE compaction_records.tree_id = :tree
  )

-- history.erasure.MARK_ERASURES_PURGED
UPDATE erasures
SET purged_at=:now
WHERE erasures.purged_at IS NULL
  AND erasures.finished_at IS NOT NULL

-- history.erasure.NEWEST_COPY
SELECT coalesce(max(copies.copy), :coalesce_2) AS coalesce_1
FROM copies

-- history.erasure.NEXT_ERASURE
SELECT coalesce(max(erasures.erasure), :coalesce_1) + 1 AS anon_1
FROM erasures
WHERE erasures.tree_id = :tree_id

-- history.erasure.OPEN_ERASURE
INSERT INTO erasures (
  tree_id,
  erasure,
  branch,
  session_id,
  kept,
  messages,
  kept_messages,
  started_at,
  newest_copy,
  sealed
)
VALUES (
  :tree_id,
  :erasure,
  :branch,
  :session_id,
  :kept,
  :messages,
  :kept_messages,
  :started_at,
  :newest_copy,
  :sealed
)

-- history.erasure.STALE_COPIES
SELECT copies.copy,
  copies.made_at,
  copies.size,
  copies.modified,
  copies.kind,
  copies.path
FROM copies
WHERE copies.copy <= (
  SELECT max(erasures.newest_copy) AS max_1
  FROM erasures
)
  OR copies.copy <= (
    SELECT max(redactions.newest_copy) AS max_2
    FROM redactions
  )
ORDER BY copies.copy

-- history.erasure_batches.CLOSE_PARTS
UPDATE erasures
SET finished_at=:now,
  newest_copy=CASE
    WHEN (
      erasures.newest_copy > (
        SELECT coalesce(max(copies.copy), 0) AS coalesce_1
        FROM copies
      )
    ) THEN erasures.newest_copy
    ELSE (
      SELECT coalesce(max(copies.copy), 0) AS coalesce_1
      FROM copies
    )
  END
WHERE erasures.tree_id = :tree
  AND erasures.branch = :of
  AND erasures.erasure <= :through
  AND erasures.finished_at IS NULL

-- history.erasure_batches.DELETE_BRANCH.1
DELETE FROM ancestors
WHERE ancestors.tree_id = :tree_id
  AND ancestors.branch = :branch

-- history.erasure_batches.DELETE_BRANCH.2
DELETE FROM branches
WHERE branches.tree_id = :tree_id
  AND branches.branch = :branch

-- history.erasure_batches.DELETE_ROWS_BEYOND.1
DELETE FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.branch = :branch
  AND notes.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.10
DELETE FROM search_rows
WHERE search_rows.tree_id = :tree_id
  AND search_rows.branch = :branch
  AND search_rows.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.2
DELETE FROM token_counts
WHERE token_counts.tree_id = :tree_id
  AND token_counts.branch = :branch
  AND token_counts.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.3
DELETE FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.4
DELETE FROM usages
WHERE usages.tree_id = :tree_id
  AND usages.branch = :branch
  AND usages.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.5
DELETE FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = :branch
  AND tool_result_paths.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.6
DELETE FROM tool_results
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.7
DELETE FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.8
DELETE FROM message_attachments
WHERE message_attachments.tree_id = :tree_id
  AND message_attachments.branch = :branch
  AND message_attachments.seq > :kept

-- history.erasure_batches.DELETE_ROWS_BEYOND.9
DELETE FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq > :kept

-- history.erasure_batches.DELETE_SUMMARIES
DELETE FROM summaries
WHERE summaries.tree_id = :tree_id
  AND summaries.summary IN (
    SELECT summaries.summary
    FROM summaries
    WHERE summaries.tree_id = :tree_id
      AND summaries.branch = :branch
      AND (
        summaries.summary NOT IN (
          SELECT compaction_records.summary
          FROM compaction_records
          WHERE compaction_records.tree_id = :tree_id
            AND compaction_records.summary IS NOT NULL
        )
      )
    ORDER BY summaries.summary DESC
    LIMIT 16 OFFSET :param_1
  )

-- history.erasure_batches.DELETE_SUMMARY_SEARCH_ROWS
DELETE FROM search_rows
WHERE search_rows.tree_id = :tree_id
  AND search_rows.summary > 0
  AND (
    search_rows.summary NOT IN (
      SELECT summaries.summary
      FROM summaries
      WHERE summaries.tree_id = :tree_id
    )
  )

-- history.erasure_batches.OPEN_PART
SELECT erasures.erasure,
  erasures.branch,
  erasures.kept,
  (
    SELECT max(messages.seq) AS max_1
    FROM messages
    WHERE messages.tree_id = :tree_id
      AND messages.branch = erasures.branch
  ) AS last,
  EXISTS (
    SELECT *
    FROM branches AS child
    WHERE child.tree_id = :tree_id
      AND child.parent_branch = erasures.branch
  ) AS is_needed
FROM erasures,
  branches
WHERE erasures.tree_id = :tree_id
  AND erasures.finished_at IS NULL
  AND branches.session_id IS NULL
  AND branches.tree_id = erasures.tree_id
  AND branches.branch = erasures.branch
ORDER BY erasures.erasure,
  erasures.branch DESC
LIMIT 1 OFFSET :param_1

-- history.erasure_log.CHANGE_COUNTS
SELECT (
  SELECT count(*) AS count_1
  FROM redactions
  WHERE redactions.tree_id = :tree_id
) AS redactions,
  coalesce(
    (
      SELECT max(erasures.erasure) AS max_1
      FROM erasures
      WHERE erasures.tree_id = :tree_id
    ),
    0
  ) AS erasures

-- history.erasure_log.OPEN_TREES
SELECT DISTINCT erasures.tree_id
FROM erasures,
  branches
WHERE erasures.finished_at IS NULL
  AND branches.session_id IS NULL
  AND branches.tree_id = erasures.tree_id
  AND branches.branch = erasures.branch

-- history.facts.ANSWERED_PLACES
SELECT tool_results.call_seq,
  tool_results.call_position
FROM tool_results
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq BETWEEN :first AND :last
  AND tool_results.call_seq IS NOT NULL

-- history.facts.ANSWERING_RESULTS
SELECT tool_results.seq,
  tool_results.call_seq,
  tool_results.call_position,
  tool_results.paths_complete
FROM tool_results
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.call_seq IS NOT NULL
ORDER BY tool_results.seq

-- history.facts.BRANCH_STARTS
SELECT branches.branch,
  branches.parent_position
FROM branches
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch

-- history.facts.CALL_ARGUMENTS
SELECT tool_calls.arguments_form,
  tool_calls.arguments
FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq = :seq
  AND tool_calls.position = :position

-- history.facts.DELETE_TREE_PATHS
DELETE FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree_id

-- history.facts.INSERT_FACTS
INSERT INTO message_facts (tree_id, branch, seq, role, turn, tokens, tokens_through)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :role,
  :turn,
  :tokens,
  :tokens_through
)

-- history.facts.INSERT_PATHS
INSERT INTO tool_result_paths (
  tree_id,
  branch,
  seq,
  path,
  start_line,
  end_line,
  contiguous,
  mentions
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :path,
  :start_line,
  :end_line,
  :contiguous,
  :mentions
)

-- history.facts.INSERT_RESULTS
INSERT INTO tool_results (
  tree_id,
  branch,
  seq,
  call_seq,
  call_position,
  tool_name,
  at,
  status,
  exit_code,
  has_stderr,
  error_prefix,
  looks_terminal,
  length,
  size,
  paths_complete
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :call_seq,
  :call_position,
  :tool_name,
  :at,
  :status,
  :exit_code,
  :has_stderr,
  :error_prefix,
  :looks_terminal,
  :length,
  :size,
  :paths_complete
)

-- history.facts.LAST_ANSWER_POSITION
SELECT message_facts.seq
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
  AND message_facts.role = 'assistant'
ORDER BY message_facts.seq DESC
LIMIT 1 OFFSET :param_1

-- history.facts.LAST_USER_POSITION
SELECT message_facts.seq
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
  AND message_facts.role = 'user'
ORDER BY message_facts.seq DESC
LIMIT 1 OFFSET :param_1

-- history.facts.LINE_TOTALS
SELECT message_facts.turn,
  message_facts.tokens_through
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq = :seq

-- history.facts.MESSAGE_MOMENT
SELECT coalesce(messages.created_at, messages.stored_at) AS coalesce_1
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq = :seq

-- history.facts.OPEN_CALLS
SELECT tool_calls.seq,
  tool_calls.position,
  tool_calls.name,
  tool_calls.arguments_form,
  tool_calls.arguments,
  tool_calls.call_id
FROM tool_calls
JOIN message_facts ON message_facts.tree_id = :tree_id
  AND message_facts.branch = tool_calls.branch
  AND message_facts.seq = tool_calls.seq
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq BETWEEN :first AND :last
  AND (
    tool_calls.call_id IS NOT NULL
    OR tool_calls.name IS NOT NULL
    OR substr(coalesce(tool_calls.extra, '{'), 1, 2) IN ('{', '{"', '{}', '=e')
  )
  AND message_facts.role = 'assistant'
  AND coalesce(tool_calls.call_id, '') IN (:call_id, :neutral_id)
ORDER BY tool_calls.seq DESC,
  tool_calls.position

-- history.facts.POSITION_TOKENS
SELECT CAST(coalesce(sum(message_facts.tokens), 0) AS INTEGER) AS coalesce_1
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq = :seq

-- history.facts.RUN_CALLS
SELECT tool_calls.seq,
  tool_calls.position,
  tool_calls.name,
  tool_calls.arguments_form,
  tool_calls.arguments,
  tool_calls.call_id
FROM tool_calls
JOIN message_facts ON message_facts.tree_id = :tree_id
  AND message_facts.branch = tool_calls.branch
  AND message_facts.seq = tool_calls.seq
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq BETWEEN :first AND :last
  AND (
    tool_calls.call_id IS NOT NULL
    OR tool_calls.name IS NOT NULL
    OR substr(coalesce(tool_calls.extra, '{'), 1, 2) IN ('{', '{"', '{}', '=e')
  )
  AND message_facts.role = 'assistant'
ORDER BY tool_calls.seq DESC,
  tool_calls.position

-- history.facts.SET_PATHS_COMPLETE
UPDATE tool_results
SET paths_complete=:complete
WHERE tool_results.tree_id = :tree
  AND tool_results.branch = :of
  AND tool_results.seq = :place

-- history.facts.SET_ROOT
UPDATE sessions
SET project_root=:root,
  revision=:revision
WHERE sessions.tree_id = :tree

-- history.facts.TOOL_KINDS_JSON
SELECT json_group_object(tool_kinds.name, tool_kinds.kind) AS anon_1
FROM tool_kinds

-- history.heads.BRANCH_ORIGIN
SELECT branches.parent_branch,
  branches.parent_position,
  branches.records_seen,
  EXISTS (
    SELECT *
    FROM compaction_records
    WHERE compaction_records.tree_id = :tree_id
      AND compaction_records.branch = :branch
      AND compaction_records.head = :position
      AND compaction_records.compaction <= :newest
      AND compaction_records.outcome != 'running'
  ) AS anon_1
FROM branches
WHERE branches.tree_id = :tree_id
  AND branches.branch = :branch

-- history.heads.HEAD_MOVES
SELECT head_moves.move,
  head_moves.kind,
  head_moves.from_position,
  head_moves.to_position,
  head_moves.moved_at,
  head_moves.from_branch,
  head_moves.to_branch
FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.session_id = :session_id
ORDER BY head_moves.move

-- history.heads.INSERT_MOVE
INSERT INTO head_moves (
  tree_id,
  session_id,
  move,
  kind,
  from_branch,
  from_position,
  to_branch,
  to_position,
  moved_at,
  earlier_rewind,
  source_move,
  source_record,
  sealed
)
VALUES (
  :tree_id,
  :session_id,
  :move,
  :kind,
  :from_branch,
  :from_position,
  :to_branch,
  :to_position,
  :moved_at,
  :earlier_rewind,
  :source_move,
  :source_record,
  :sealed
)

-- history.heads.MOVE_STATE
SELECT (
  SELECT branches.branch
  FROM branches
  WHERE branches.tree_id = :tree_id
  ORDER BY branches.branch DESC
  LIMIT 1 OFFSET :param_1
) + 1 AS branch,
  coalesce(
    (
      SELECT head_moves.move
      FROM head_moves
      WHERE head_moves.tree_id = :tree_id
        AND head_moves.session_id = :session_id
      ORDER BY head_moves.move DESC
      LIMIT 1 OFFSET :param_2
    ),
    0
  ) + 1 AS move,
  coalesce(
    (
      SELECT compaction_records.compaction
      FROM compaction_records
      WHERE compaction_records.tree_id = :tree_id
      ORDER BY compaction_records.compaction DESC
      LIMIT 1 OFFSET :param_3
    ),
    0
  ) AS record,
  undone.from_branch,
  undone.from_position,
  undone.earlier_rewind,
  sessions.tree_id,
  sessions.id,
  sessions.head_branch,
  sessions.head,
  sessions.last_rewind,
  sessions.created_at,
  sessions.updated_at,
  sessions.forked_from,
  sessions.forked_at,
  sessions.fold_case,
  sessions.title,
  sessions.project_root,
  sessions.metadata,
  sessions.revision,
  sessions.owner,
  sessions.archived,
  sessions.sealed,
  sessions.updated_second,
  sessions.source,
  sessions.file
FROM sessions
LEFT OUTER JOIN head_moves AS undone ON undone.tree_id = :tree_id
  AND undone.session_id = :session_id
  AND undone.move = (
    SELECT head_session.last_rewind
    FROM sessions AS head_session
    WHERE head_session.tree_id = :tree_id
      AND head_session.id = :session_id
  )
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.heads.SET_HEAD
UPDATE sessions
SET head_branch=:branch,
  head=:to,
  last_rewind=:rewind,
  updated_at=:now,
  revision=:revision,
  updated_second=(:now / 1000)
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id

-- history.imported_files.DELETE_STATE
DELETE FROM settings
WHERE settings.name = :setting

-- history.imported_files.FILES_OF_TREE
SELECT DISTINCT sessions.file,
  sessions.owner
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.file IS NOT NULL

-- history.imported_files.FILE_OF_SESSION
SELECT sessions.file,
  sessions.owner
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.file IS NOT NULL
  AND sessions.id = :session_id

-- history.imported_files.INSERT_STATE
INSERT INTO settings (name, value)
VALUES (:setting, :state)

-- history.imported_files.LOAD_STATE
SELECT settings.value
FROM settings
WHERE settings.name = :setting

-- history.kept_usages.DELETE_OWNED_USAGES
DELETE FROM kept_usages
WHERE kept_usages.owner = :kept_owner

-- history.kept_usages.EMPTY_OWNED_USAGES
UPDATE kept_usages
SET owner=NULL,
  project_root=NULL
WHERE kept_usages.owner = :kept_owner

-- history.kept_usages.INSERT_KEPT
INSERT INTO kept_usages (
  tree_id,
  erasure,
  number,
  day,
  parts,
  requests,
  input,
  output,
  cached,
  written,
  cost,
  model,
  base_model,
  source,
  owner,
  project_root,
  sealed
)
VALUES (
  :tree_id,
  :erasure,
  :number,
  :day,
  :parts,
  :requests,
  :input,
  :output,
  :cached,
  :written,
  :cost,
  :model,
  :base_model,
  :source,
  :owner,
  :project_root,
  :sealed
)

-- history.kept_usages.LEFT_SUMS
SELECT usages.at / 86400000 AS day,
  0 + CASE
    WHEN (
      (usages.input - usages.cached) - coalesce(usages.written, 0) > 0
    ) THEN 1
    ELSE 0
  END + CASE WHEN (usages.cached > 0) THEN 2 ELSE 0 END + CASE
    WHEN (coalesce(usages.written, 0) > 0) THEN 4
    ELSE 0
  END + CASE WHEN (usages.output > 0) THEN 8 ELSE 0 END AS parts,
  count(*) AS requests,
  CAST(sum(usages.input) AS INTEGER) AS input,
  CAST(sum(usages.output) AS INTEGER) AS output,
  CAST(sum(usages.cached) AS INTEGER) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS INTEGER) AS written,
  sum(usages.cost) AS cost,
  usages.model AS model,
  usages.base_model AS base_model,
  erased.source AS source,
  erased.owner AS owner,
  erased.project_root AS project_root
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions AS erased ON erased.tree_id = branches.tree_id
  AND erased.id = branches.session_id
WHERE usages.tree_id = :tree_id
  AND branches.tree_id = :tree_id
  AND branches.session_id = :session_id
  AND erased.tree_id = :tree_id
  AND (
    usages.branch IN (
      SELECT CAST("left".value AS INTEGER) AS value
      FROM json_each(:left) AS "left"
    )
    OR (
      EXISTS (
        SELECT *
        FROM erasures
        WHERE erasures.tree_id = :tree_id
          AND erasures.erasure = :erasure
          AND erasures.branch = usages.branch
          AND usages.seq > erasures.kept
      )
    )
  )
GROUP BY usages.at / 86400000,
  0 + CASE
    WHEN (
      (usages.input - usages.cached) - coalesce(usages.written, 0) > 0
    ) THEN 1
    ELSE 0
  END + CASE WHEN (usages.cached > 0) THEN 2 ELSE 0 END + CASE
    WHEN (coalesce(usages.written, 0) > 0) THEN 4
    ELSE 0
  END + CASE WHEN (usages.output > 0) THEN 8 ELSE 0 END,
  usages.model,
  usages.base_model,
  erased.source,
  erased.owner,
  erased.project_root,
  usages.cost IS NULL
ORDER BY usages.at / 86400000,
  usages.model,
  0 + CASE
    WHEN (
      (usages.input - usages.cached) - coalesce(usages.written, 0) > 0
    ) THEN 1
    ELSE 0
  END + CASE WHEN (usages.cached > 0) THEN 2 ELSE 0 END + CASE
    WHEN (coalesce(usages.written, 0) > 0) THEN 4
    ELSE 0
  END + CASE WHEN (usages.output > 0) THEN 8 ELSE 0 END

-- history.kept_usages.SESSION_SUMS
SELECT usages.at / 86400000 AS day,
  0 + CASE
    WHEN (
      (usages.input - usages.cached) - coalesce(usages.written, 0) > 0
    ) THEN 1
    ELSE 0
  END + CASE WHEN (usages.cached > 0) THEN 2 ELSE 0 END + CASE
    WHEN (coalesce(usages.written, 0) > 0) THEN 4
    ELSE 0
  END + CASE WHEN (usages.output > 0) THEN 8 ELSE 0 END AS parts,
  count(*) AS requests,
  CAST(sum(usages.input) AS INTEGER) AS input,
  CAST(sum(usages.output) AS INTEGER) AS output,
  CAST(sum(usages.cached) AS INTEGER) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS INTEGER) AS written,
  sum(usages.cost) AS cost,
  usages.model AS model,
  usages.base_model AS base_model,
  erased.source AS source,
  erased.owner AS owner,
  erased.project_root AS project_root
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions AS erased ON erased.tree_id = branches.tree_id
  AND erased.id = branches.session_id
WHERE usages.tree_id = :tree_id
  AND branches.tree_id = :tree_id
  AND branches.session_id = :session_id
  AND erased.tree_id = :tree_id
GROUP BY usages.at / 86400000,
  0 + CASE
    WHEN (
      (usages.input - usages.cached) - coalesce(usages.written, 0) > 0
    ) THEN 1
    ELSE 0
  END + CASE WHEN (usages.cached > 0) THEN 2 ELSE 0 END + CASE
    WHEN (coalesce(usages.written, 0) > 0) THEN 4
    ELSE 0
  END + CASE WHEN (usages.output > 0) THEN 8 ELSE 0 END,
  usages.model,
  usages.base_model,
  erased.source,
  erased.owner,
  erased.project_root,
  usages.cost IS NULL
ORDER BY usages.at / 86400000,
  usages.model,
  0 + CASE
    WHEN (
      (usages.input - usages.cached) - coalesce(usages.written, 0) > 0
    ) THEN 1
    ELSE 0
  END + CASE WHEN (usages.cached > 0) THEN 2 ELSE 0 END + CASE
    WHEN (coalesce(usages.written, 0) > 0) THEN 4
    ELSE 0
  END + CASE WHEN (usages.output > 0) THEN 8 ELSE 0 END

-- history.kept_usages.SUM_KEPT
SELECT kept_usages.model,
  NULL AS anon_1,
  NULL AS anon__1,
  NULL AS anon__2,
  NULL AS anon__3,
  kept_usages.day,
  NULL AS anon__4,
  NULL AS anon__5,
  CAST(sum(kept_usages.requests) AS INTEGER) AS sum_1,
  CAST(sum(kept_usages.input) AS INTEGER) AS sum_2,
  CAST(sum(kept_usages.output) AS INTEGER) AS sum_3,
  CAST(sum(kept_usages.cached) AS INTEGER) AS sum_4,
  CAST(sum(kept_usages.written) AS INTEGER) AS sum_5,
  CAST(sum(kept_usages.cost) AS REAL) AS sum_6
FROM kept_usages
WHERE kept_usages.day * 86400000 >= :since
  AND kept_usages.day * 86400000 < :until
GROUP BY kept_usages.model,
  kept_usages.day,
  kept_usages.cost IS NULL

-- history.kept_usages.SUM_OWNED_KEPT
SELECT kept_usages.model,
  NULL AS anon_1,
  NULL AS anon__1,
  NULL AS anon__2,
  NULL AS anon__3,
  NULL AS anon__4,
  NULL AS anon__5,
  NULL AS anon__6,
  CAST(sum(kept_usages.requests) AS INTEGER) AS sum_1,
  CAST(sum(kept_usages.input) AS INTEGER) AS sum_2,
  CAST(sum(kept_usages.output) AS INTEGER) AS sum_3,
  CAST(sum(kept_usages.cached) AS INTEGER) AS sum_4,
  CAST(sum(kept_usages.written) AS INTEGER) AS sum_5,
  CAST(sum(kept_usages.cost) AS REAL) AS sum_6
FROM kept_usages
WHERE kept_usages.owner = :owner
GROUP BY kept_usages.model,
  kept_usages.cost IS NULL

-- history.lines.LOCKED_POINTER
SELECT sessions.tree_id,
  sessions.id,
  sessions.head_branch,
  sessions.head,
  branches.parent_position,
  sessions.last_rewind,
  sessions.project_root,
  sessions.fold_case,
  message_facts.turn,
  message_facts.tokens_through,
  sessions.revision,
  sessions.owner,
  4611686018427387904 AS newest,
  sessions.updated_second,
  0 AS is_heard
FROM sessions
JOIN branches ON branches.tree_id = sessions.tree_id
  AND branches.branch = sessions.head_branch
LEFT OUTER JOIN message_facts ON message_facts.tree_id = sessions.tree_id
  AND message_facts.branch = sessions.head_branch
  AND message_facts.seq = sessions.head
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.lines.LOCKING_POINTER
SELECT sessions.tree_id,
  sessions.id,
  sessions.head_branch,
  sessions.head,
  branches.parent_position,
  sessions.last_rewind,
  sessions.project_root,
  sessions.fold_case,
  message_facts.turn,
  message_facts.tokens_through,
  sessions.revision,
  sessions.owner,
  4611686018427387904 AS newest,
  sessions.updated_second,
  0 AS is_heard
FROM sessions
JOIN branches ON branches.tree_id = sessions.tree_id
  AND branches.branch = sessions.head_branch
LEFT OUTER JOIN message_facts ON message_facts.tree_id = sessions.tree_id
  AND message_facts.branch = sessions.head_branch
  AND message_facts.seq = sessions.head
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.lines.POINTER
SELECT sessions.tree_id,
  sessions.id,
  sessions.head_branch,
  sessions.head,
  branches.parent_position,
  sessions.last_rewind,
  sessions.project_root,
  sessions.fold_case,
  message_facts.turn,
  message_facts.tokens_through,
  sessions.revision,
  sessions.owner,
  4611686018427387904 AS newest,
  sessions.updated_second,
  0 AS is_heard
FROM sessions
JOIN branches ON branches.tree_id = sessions.tree_id
  AND branches.branch = sessions.head_branch
LEFT OUTER JOIN message_facts ON message_facts.tree_id = sessions.tree_id
  AND message_facts.branch = sessions.head_branch
  AND message_facts.seq = sessions.head
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.lines.SEGMENTS
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
SELECT segments.branch,
  segments.first,
  segments.last
FROM segments
ORDER BY segments.first

-- history.lines.SESSION_LOCK
SELECT sessions.tree_id
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.lines.TREES_OF_SESSIONS
SELECT session_ids.tree_id
FROM session_ids
WHERE session_ids.id IN (
  SELECT ids.value
  FROM json_each(:ids) AS ids
)

-- history.lines.TREE_AND_SESSION_LOCK
SELECT branches.branch
FROM branches
JOIN sessions ON sessions.tree_id = :tree_id
  AND sessions.id = :session_id
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch
LIMIT 1

-- history.lines.TREE_LOCK
SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch
LIMIT 1 OFFSET :param_1

-- history.lines.TREE_OF_SESSION
SELECT session_ids.tree_id
FROM session_ids
WHERE session_ids.id = :session_id

-- history.listing.COUNT_FOUND
SELECT count(*) AS count_1
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.updated_second >= :since / 1000
  AND sessions.updated_at >= :since
  AND sessions.updated_second <= :until / 1000
  AND sessions.updated_at < :until
  AND sessions.source = :source
  AND (
    sessions.project_root = :project
    OR substr(sessions.project_root, :substr_1, length(:below)) = :below
    OR substr(
      sessions.project_root,
      :substr_2,
      length(:below_on_windows)
    ) = :below_on_windows
  )

-- history.listing.COUNT_OWNED
SELECT count(*) AS count_1
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.owner = :owner

-- history.listing.COUNT_SESSIONS
SELECT count(*) AS count_1
FROM sessions
WHERE sessions.archived = :archived

-- history.listing.LIST_BY_SECOND
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
ORDER BY sessions.updated_second DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_BY_SECOND_AFTER
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id)
ORDER BY sessions.updated_second DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_CREATED
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
  AND (sessions.created_at, sessions.id) < (:moment, :id)
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_FOUND
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.updated_second >= :since / 1000
  AND sessions.updated_at >= :since
  AND sessions.updated_second <= :until / 1000
  AND sessions.updated_at < :until
  AND sessions.source = :source
  AND (
    sessions.project_root = :project
    OR substr(sessions.project_root, :substr_1, length(:below)) = :below
    OR substr(
      sessions.project_root,
      :substr_2,
      length(:below_on_windows)
    ) = :below_on_windows
  )
  AND lower(sessions.title) LIKE lower(:title) ESCAPE '\'
  AND (
    sessions.forked_from IS NOT NULL
    OR NOT (
      EXISTS (
        SELECT *
        FROM session_keys
        WHERE session_keys.tree_id = sessions.tree_id
          AND session_keys.session_id = sessions.id
          AND session_keys."key" = '"parent_session"'
      )
    )
  )
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id)
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_OWNED_CREATED
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.owner = :owner
  AND (sessions.created_at, sessions.id) < (:moment, :id)
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_OWNED_FOUND
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.owner = :owner
  AND sessions.source IS NULL
  AND (
    sessions.project_root = :project
    OR substr(sessions.project_root, :substr_1, length(:below)) = :below
    OR substr(
      sessions.project_root,
      :substr_2,
      length(:below_on_windows)
    ) = :below_on_windows
  )
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_OWNED_SESSIONS
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.owner = :owner
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id)
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_OWNED_TAGGED
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.owner = :owner
  AND (
    EXISTS (
      SELECT *
      FROM session_keys AS of_key1
      WHERE of_key1.tree_id = sessions.tree_id
        AND of_key1.session_id = sessions.id
        AND of_key1."key" = :key1
        AND of_key1.value = :value_of_key1
    )
  )
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id)
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_PREFIX
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.id >= :prefix
  AND sessions.id < :end
  AND sessions.archived + 0 = :archived
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_SESSIONS
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_SESSIONS_AFTER
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.archived = :archived
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id)
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_TAGGED
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM session_keys AS first
JOIN sessions ON first.tree_id = sessions.tree_id
  AND first.session_id = sessions.id
  AND first."key" = :key1
  AND first.value = :value_of_key1
WHERE sessions.archived + 0 = :archived
  AND (
    EXISTS (
      SELECT *
      FROM session_keys AS of_key2
      WHERE of_key2.tree_id = sessions.tree_id
        AND of_key2.session_id = sessions.id
        AND of_key2."key" = :key2
        AND of_key2.value = :value_of_key2
    )
  )
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.listing.LIST_TREE
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.tree_id = :tree
  AND sessions.archived + 0 = :archived
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1

-- history.message_lookup.BRANCH_LINES
WITH RECURSIVE sources(generation, session_id, moves, records, before) AS (
  SELECT 0,
    sessions.id,
    COALESCE(
      (
        SELECT MAX(head_moves.move)
        FROM head_moves
        WHERE head_moves.tree_id = :tree_id
          AND head_moves.session_id = :session_id
      ),
      0
    ),
    :never,
    :never
  FROM sessions
  WHERE sessions.tree_id = :tree_id
    AND sessions.id = :session_id
  UNION ALL
  SELECT sources.generation + 1,
    fork.forked_from,
    forks.source_move,
    forks.source_record,
    forks.to_branch
  FROM sources
  JOIN sessions AS fork ON fork.tree_id = :tree_id
    AND fork.id = sources.session_id
  JOIN head_moves AS forks ON forks.tree_id = :tree_id
    AND forks.session_id = sources.session_id
    AND forks.move = 1
  WHERE forks.kind = 'fork'
    AND forks.source_move IS NOT NULL
    AND forks.to_branch < sources.before
),
gone(generation, session_id, moves, records, branch, move, head) AS (
  SELECT sources.generation,
    sources.session_id,
    sources.moves,
    sources.records,
    head_moves.from_branch,
    MAX(head_moves.move),
    MAX(head_moves.from_position)
  FROM sources
  JOIN head_moves ON head_moves.tree_id = :tree_id
    AND head_moves.session_id = sources.session_id
    AND head_moves.move <= sources.moves
  WHERE head_moves.kind <> 'fork'
    AND head_moves.from_branch < sources.before
  GROUP BY sources.generation,
    sources.session_id,
    sources.moves,
    sources.records,
    head_moves.from_branch
),
seen(
  branch,
  parent_branch,
  parent_position,
  head,
  left_at,
  records,
  generation,
  move
) AS (
  SELECT branches.branch,
    branches.parent_branch,
    branches.parent_position,
    sessions.head,
    NULL,
    :never,
    -1,
    0
  FROM sessions
  JOIN branches ON branches.tree_id = :tree_id
    AND branches.branch = sessions.head_branch
  WHERE sessions.tree_id = :tree_id
    AND sessions.id = :session_id
  UNION ALL
  SELECT branches.branch,
    branches.parent_branch,
    branches.parent_position,
    gone.head,
    leaving.moved_at,
    gone.records,
    gone.generation,
    gone.move
  FROM gone
  JOIN head_moves AS leaving ON leaving.tree_id = :tree_id
    AND leaving.session_id = gone.session_id
    AND leaving.move = gone.move
  JOIN branches ON branches.tree_id = :tree_id
    AND branches.branch = gone.branch
  WHERE NOT EXISTS (
    SELECT 1
    FROM head_moves AS last
    WHERE last.tree_id = :tree_id
      AND last.session_id = gone.session_id
      AND last.move = gone.moves
      AND last.to_branch = gone.branch
  )
    AND (
      gone.generation = 0
      OR gone.head > branches.parent_position
    )
    AND NOT EXISTS (
      SELECT 1
      FROM sources AS nearer
      JOIN branches AS own ON own.tree_id = :tree_id
        AND own.parent_branch = gone.branch
        AND own.parent_position = gone.head
        AND own.session_id = nearer.session_id
        AND own.branch < nearer.before
      WHERE nearer.generation < gone.generation
    )
),
walk(line, branch, parent_branch, parent_position, last) AS (
  SELECT branch,
    branch,
    parent_branch,
    parent_position,
    head
  FROM seen
  WHERE head >= :seq - 1
  UNION ALL
  SELECT walk.line,
    parents.branch,
    parents.parent_branch,
    parents.parent_position,
    walk.parent_position
  FROM walk
  JOIN branches AS parents ON parents.tree_id = :tree_id
    AND parents.branch = walk.parent_branch
  WHERE walk.parent_position >= :seq - 1
)
SELECT seen.branch,
  holding.branch,
  earlier.branch
FROM seen
LEFT JOIN walk AS holding ON holding.line = seen.branch
  AND holding.parent_position < :seq
  AND holding.last >= :seq
LEFT JOIN walk AS earlier ON earlier.line = seen.branch
  AND earlier.parent_position < :seq - 1
  AND earlier.last >= :seq - 1
ORDER BY seen.generation,
  seen.move DESC

-- history.message_lookup.FIND_MESSAGES
WITH RECURSIVE through(tree_id, branch, seq, holder, message_id) AS (
  SELECT messages.tree_id AS tree_id,
    messages.branch AS branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  WHERE messages.message_id IN (:message_id, :neutral_id)
  UNION ALL
  SELECT branches.tree_id AS tree_id,
    branches.branch AS branch,
    through.seq AS seq,
    through.holder AS holder,
    through.message_id AS message_id
  FROM branches
  JOIN through ON branches.tree_id = through.tree_id
    AND branches.parent_branch = through.branch
    AND branches.parent_position >= through.seq
)
SELECT sessions.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (own.branch = sessions.head_branch) THEN own.branch
      END
    ),
    max(own.branch)
  ) AS branch,
  through.seq
FROM through
JOIN branches AS own ON own.tree_id = through.tree_id
  AND own.branch = through.branch
JOIN sessions ON sessions.tree_id = own.tree_id
  AND sessions.id = own.session_id
GROUP BY sessions.id,
  sessions.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY sessions.updated_at DESC,
  sessions.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_OWNED_MESSAGES
WITH RECURSIVE through(tree_id, branch, seq, holder, message_id) AS (
  SELECT messages.tree_id AS tree_id,
    messages.branch AS branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  WHERE messages.message_id IN (:message_id, :neutral_id)
  UNION ALL
  SELECT branches.tree_id AS tree_id,
    branches.branch AS branch,
    through.seq AS seq,
    through.holder AS holder,
    through.message_id AS message_id
  FROM branches
  JOIN through ON branches.tree_id = through.tree_id
    AND branches.parent_branch = through.branch
    AND branches.parent_position >= through.seq
)
SELECT sessions.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (own.branch = sessions.head_branch) THEN own.branch
      END
    ),
    max(own.branch)
  ) AS branch,
  through.seq
FROM through
JOIN branches AS own ON own.tree_id = through.tree_id
  AND own.branch = through.branch
JOIN sessions ON sessions.tree_id = own.tree_id
  AND sessions.id = own.session_id
WHERE sessions.owner = :owner
GROUP BY sessions.id,
  sessions.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY sessions.updated_at DESC,
  sessions.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_OWNED_PREFIX
WITH RECURSIVE through(tree_id, branch, seq, holder, message_id) AS (
  SELECT messages.tree_id AS tree_id,
    messages.branch AS branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  WHERE messages.message_id >= :prefix
    AND messages.message_id < :end
  UNION ALL
  SELECT branches.tree_id AS tree_id,
    branches.branch AS branch,
    through.seq AS seq,
    through.holder AS holder,
    through.message_id AS message_id
  FROM branches
  JOIN through ON branches.tree_id = through.tree_id
    AND branches.parent_branch = through.branch
    AND branches.parent_position >= through.seq
)
SELECT sessions.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (own.branch = sessions.head_branch) THEN own.branch
      END
    ),
    max(own.branch)
  ) AS branch,
  through.seq
FROM through
JOIN branches AS own ON own.tree_id = through.tree_id
  AND own.branch = through.branch
JOIN sessions ON sessions.tree_id = own.tree_id
  AND sessions.id = own.session_id
WHERE sessions.owner = :owner
GROUP BY sessions.id,
  sessions.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.message_id,
  sessions.updated_at DESC,
  sessions.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_PREFIX
WITH RECURSIVE through(tree_id, branch, seq, holder, message_id) AS (
  SELECT messages.tree_id AS tree_id,
    messages.branch AS branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  WHERE messages.message_id >= :prefix
    AND messages.message_id < :end
  UNION ALL
  SELECT branches.tree_id AS tree_id,
    branches.branch AS branch,
    through.seq AS seq,
    through.holder AS holder,
    through.message_id AS message_id
  FROM branches
  JOIN through ON branches.tree_id = through.tree_id
    AND branches.parent_branch = through.branch
    AND branches.parent_position >= through.seq
)
SELECT sessions.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (own.branch = sessions.head_branch) THEN own.branch
      END
    ),
    max(own.branch)
  ) AS branch,
  through.seq
FROM through
JOIN branches AS own ON own.tree_id = through.tree_id
  AND own.branch = through.branch
JOIN sessions ON sessions.tree_id = own.tree_id
  AND sessions.id = own.session_id
GROUP BY sessions.id,
  sessions.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.message_id,
  sessions.updated_at DESC,
  sessions.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_TREE_MESSAGES
WITH RECURSIVE through(tree_id, branch, seq, holder, message_id) AS (
  SELECT messages.tree_id AS tree_id,
    messages.branch AS branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND messages.tree_id = :tree_id
  UNION ALL
  SELECT branches.tree_id AS tree_id,
    branches.branch AS branch,
    through.seq AS seq,
    through.holder AS holder,
    through.message_id AS message_id
  FROM branches
  JOIN through ON branches.tree_id = through.tree_id
    AND branches.parent_branch = through.branch
    AND branches.parent_position >= through.seq
  WHERE branches.tree_id = :tree_id
)
SELECT sessions.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (own.branch = sessions.head_branch) THEN own.branch
      END
    ),
    max(own.branch)
  ) AS branch,
  through.seq
FROM through
JOIN branches AS own ON own.tree_id = through.tree_id
  AND own.branch = through.branch
JOIN sessions ON sessions.tree_id = own.tree_id
  AND sessions.id = own.session_id
WHERE sessions.tree_id = :tree_id
GROUP BY sessions.id,
  sessions.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY sessions.updated_at DESC,
  sessions.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_TREE_PREFIX
WITH RECURSIVE through(tree_id, branch, seq, holder, message_id) AS (
  SELECT messages.tree_id AS tree_id,
    messages.branch AS branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  WHERE messages.message_id >= :prefix
    AND messages.message_id < :end
    AND messages.tree_id = :tree_id
  UNION ALL
  SELECT branches.tree_id AS tree_id,
    branches.branch AS branch,
    through.seq AS seq,
    through.holder AS holder,
    through.message_id AS message_id
  FROM branches
  JOIN through ON branches.tree_id = through.tree_id
    AND branches.parent_branch = through.branch
    AND branches.parent_position >= through.seq
  WHERE branches.tree_id = :tree_id
)
SELECT sessions.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (own.branch = sessions.head_branch) THEN own.branch
      END
    ),
    max(own.branch)
  ) AS branch,
  through.seq
FROM through
JOIN branches AS own ON own.tree_id = through.tree_id
  AND own.branch = through.branch
JOIN sessions ON sessions.tree_id = own.tree_id
  AND sessions.id = own.session_id
WHERE sessions.tree_id = :tree_id
GROUP BY sessions.id,
  sessions.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.message_id,
  sessions.updated_at DESC,
  sessions.id DESC,
  through.seq DESC

-- history.message_lookup.FIRST_TURN_POSITION
SELECT message_facts.seq
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
  AND message_facts.turn > 0
ORDER BY message_facts.seq
LIMIT 1 OFFSET :param_1

-- history.message_lookup.TURN_BEGINNINGS
SELECT message_facts.turn,
  message_facts.seq,
  coalesce(messages.created_at, messages.stored_at) AS coalesce_1,
  messages.role,
  messages.name,
  messages.status,
  messages.tool_call_id,
  messages.created_at,
  messages.message_id,
  messages.extra,
  messages.content_form,
  messages.content
FROM message_facts
JOIN messages ON messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq = message_facts.seq
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
  AND message_facts.role = 'user'
  AND message_facts.turn BETWEEN :start AND :stop
ORDER BY message_facts.seq

-- history.message_notes.DELETE_NOTE
DELETE FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.branch = :branch
  AND notes.seq = :seq
  AND notes."key" = :key
  AND notes.owner IS :owner

-- history.message_notes.DELETE_UNREACHABLE_NOTES
DELETE FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.session_id = :session_id
  AND NOT (
    EXISTS (
      SELECT *
      FROM sessions
      WHERE sessions.tree_id = :tree_id
        AND sessions.owner IS notes.owner
    )
  )

-- history.message_notes.INSERT_NOTE
INSERT INTO notes (
  tree_id,
  branch,
  seq,
  note,
  "key",
  session_id,
  owner,
  at,
  value,
  sealed
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :note,
  :key,
  :session_id,
  :owner,
  :at,
  :value,
  :sealed
)

-- history.message_notes.LINE_NOTES
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
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes."key",
  notes.value,
  notes.at
FROM segments
JOIN notes ON notes.tree_id = :tree_id
  AND notes.branch = segments.branch
  AND notes.seq BETWEEN segments.first AND segments.last
  AND notes.owner IS :owner
ORDER BY notes.seq,
  notes."key"

-- history.message_notes.LINE_NOTES_AT
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
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes."key",
  notes.value,
  notes.at
FROM segments
JOIN notes ON notes.tree_id = :tree_id
  AND notes.branch = segments.branch
  AND notes.seq BETWEEN segments.first AND segments.last
  AND notes.owner IS :owner
WHERE notes.seq = :seq
ORDER BY notes.seq,
  notes."key"

-- history.message_notes.LINE_NOTES_OF_KEY
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
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes."key",
  notes.value,
  notes.at
FROM segments
JOIN notes ON notes.tree_id = :tree_id
  AND notes.branch = segments.branch
  AND notes.seq BETWEEN segments.first AND segments.last
  AND notes.owner IS :owner
WHERE notes."key" = :key
ORDER BY notes.seq,
  notes."key"

-- history.message_notes.LIST_NOTES_OF_KEY
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes."key",
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes."key" = :key
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes."key"
LIMIT :limit OFFSET :param_1

-- history.message_notes.LIST_NOTES_OF_KEY_AFTER
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes."key",
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes."key" = :key
  AND notes.at >= :seen_at
  AND (
    notes.at,
    notes.session_id,
    notes.branch,
    notes.seq,
    notes."key"
  ) > (
    :seen_at,
    :seen_session_id,
    :seen_branch,
    :seen_seq,
    :seen_key
  )
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes."key"
LIMIT :limit OFFSET :param_1

-- history.message_notes.LIST_OWNED_NOTES
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes."key",
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes.owner IS :owner
  AND sessions.owner = :owner
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes."key"
LIMIT :limit OFFSET :param_1

-- history.message_notes.LIST_OWNED_NOTES_OF_KEY
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes."key",
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes."key" = :key
  AND notes.owner IS :owner
  AND sessions.owner = :owner
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes."key"
LIMIT :limit OFFSET :param_1

-- history.message_notes.NEXT_NOTE
SELECT coalesce(max(notes.note), 0) + 1 AS anon_1
FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.branch = :branch
  AND notes.seq = :seq

-- history.price_rows.DELETE_OWNED_PRICES
DELETE FROM prices
WHERE prices.owner = :owner

-- history.price_rows.DELETE_PRICE
DELETE FROM prices
WHERE prices.owner = :old_owner
  AND prices.model = :old_model
  AND prices.valid_from = :old_valid_from

-- history.price_rows.INSERT_PRICE
INSERT INTO prices (owner, model, valid_from, input, cached, written, output)
VALUES (
  :owner,
  :model,
  :valid_from,
  :input,
  :cached,
  :written,
  :output
)

-- history.price_rows.LIST_OWNED_PRICES
SELECT prices.owner,
  prices.model,
  prices.valid_from,
  prices.input,
  prices.cached,
  prices.written,
  prices.output
FROM prices
WHERE prices.owner IN (:owner_1, :owner)
ORDER BY prices.owner,
  prices.model,
  prices.valid_from

-- history.price_rows.LIST_PRICES
SELECT prices.owner,
  prices.model,
  prices.valid_from,
  prices.input,
  prices.cached,
  prices.written,
  prices.output
FROM prices
ORDER BY prices.owner,
  prices.model,
  prices.valid_from

-- history.price_rows.MODEL_PRICES
SELECT prices.owner,
  prices.model,
  prices.valid_from,
  prices.input,
  prices.cached,
  prices.written,
  prices.output
FROM prices
WHERE prices.owner IN (:owner_1, :owner)
  AND prices.model IN (:model, :base_model)

-- history.raw_messages.CALLS_IN_RUN
SELECT tool_calls.seq,
  tool_calls.call_id,
  tool_calls.name,
  tool_calls.arguments_form,
  tool_calls.arguments,
  tool_calls.extra
FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq BETWEEN :first AND :last
ORDER BY tool_calls.seq,
  tool_calls.position

-- history.raw_messages.FIND_OTHER_FORMAT
SELECT messages.seq
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
  AND messages.wire_format IS NOT :wire_format
LIMIT 1 OFFSET :param_1

-- history.raw_messages.MESSAGES_IN_RUN
SELECT messages.seq,
  messages.stored_at,
  messages.digest,
  messages.wire_format,
  messages.role,
  messages.name,
  messages.status,
  messages.tool_call_id,
  messages.created_at,
  messages.message_id,
  messages.extra,
  messages.content_form,
  messages.content
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
ORDER BY messages.seq

-- history.redaction.ANSWERING_POSITIONS
SELECT tool_results.seq
FROM tool_results
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq > :seq
  AND tool_results.call_seq = :seq
ORDER BY tool_results.seq

-- history.redaction.BLANK_CALL
UPDATE tool_calls
SET call_id=:new_call_id,
  name=:new_name,
  arguments_form=:new_arguments_form,
  arguments=:new_arguments,
  extra=:new_extra
WHERE tool_calls.tree_id = :tree
  AND tool_calls.branch = :of
  AND tool_calls.seq = :position
  AND tool_calls.position = :number

-- history.redaction.BLANK_MESSAGE
UPDATE messages
SET role=:new_role,
  name=:new_name,
  status=:new_status,
  tool_call_id=:new_tool_call_id,
  created_at=:new_created_at,
  message_id=:new_message_id,
  digest=:new_digest,
  extra=:new_extra,
  content_form=:new_content_form,
  content=:new_content
WHERE messages.tree_id = :tree
  AND messages.branch = :of
  AND messages.seq = :position

-- history.redaction.BRANCH_PARENTS
SELECT branches.branch,
  branches.parent_branch,
  branches.parent_position
FROM branches
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch

-- history.redaction.CLOSE_REDACTION
UPDATE redactions
SET finished_at=:now
WHERE redactions.tree_id = :tree
  AND redactions.branch = :of
  AND redactions.seq = :position

-- history.redaction.COVERING_SUMMARIES
SELECT summaries.branch,
  summaries.last,
  compaction_records.compaction
FROM summaries
JOIN compaction_records ON compaction_records.tree_id = summaries.tree_id
  AND compaction_records.summary = summaries.summary
WHERE summaries.tree_id = :tree_id
  AND summaries.first <= :seq
  AND summaries.last >= :seq

-- history.redaction.DELETE_RESULT
DELETE FROM tool_results
WHERE tool_results.tree_id = :tree
  AND tool_results.branch = :of
  AND tool_results.seq = :position

-- history.redaction.DELETE_RESULT_PATHS
DELETE FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree
  AND tool_result_paths.branch = :of
  AND tool_result_paths.seq = :position

-- history.redaction.DELETE_SEARCH_ROWS
DELETE FROM search_rows
WHERE search_rows.tree_id = :tree
  AND search_rows.branch = :of
  AND search_rows.seq = :position

-- history.redaction.DELETE_TOKEN_COUNTS
DELETE FROM token_counts
WHERE token_counts.tree_id = :tree
  AND token_counts.branch = :of
  AND token_counts.seq = :position

-- history.redaction.MARK_REDACTIONS_PURGED
UPDATE redactions
SET purged_at=:now
WHERE redactions.purged_at IS NULL

-- history.redaction.MESSAGE_CALLS
SELECT tool_calls.seq,
  tool_calls.call_id,
  tool_calls.name,
  tool_calls.arguments_form,
  tool_calls.arguments,
  tool_calls.extra
FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq = :seq
ORDER BY tool_calls.position

-- history.redaction.OPEN_REDACTION
INSERT INTO redactions (
  tree_id,
  branch,
  seq,
  session_id,
  reason,
  redacted_by,
  redacted_at,
  summaries,
  newest_copy,
  sealed
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :session_id,
  :reason,
  :redacted_by,
  :redacted_at,
  :summaries,
  :newest_copy,
  :sealed
)

-- history.redaction.REDACTION
SELECT redactions.tree_id,
  redactions.branch,
  redactions.seq,
  redactions.session_id,
  redactions.reason,
  redactions.redacted_by,
  redactions.redacted_at,
  redactions.summaries,
  redactions.newest_copy,
  redactions.purged_at
FROM redactions
WHERE redactions.tree_id = :tree_id
  AND redactions.branch = :branch
  AND redactions.seq = :seq

-- history.redaction.REDACTIONS
SELECT redactions.tree_id,
  redactions.branch,
  redactions.seq,
  redactions.session_id,
  redactions.reason,
  redactions.redacted_by,
  redactions.redacted_at,
  redactions.summaries,
  redactions.newest_copy,
  redactions.purged_at
FROM redactions
ORDER BY redactions.redacted_at,
  redactions.branch,
  redactions.seq

-- history.redaction.REDACTIONS_OF_TREE
SELECT redactions.tree_id,
  redactions.branch,
  redactions.seq,
  redactions.session_id,
  redactions.reason,
  redactions.redacted_by,
  redactions.redacted_at,
  redactions.summaries,
  redactions.newest_copy,
  redactions.purged_at
FROM redactions
WHERE redactions.tree_id = :tree_id
ORDER BY redactions.redacted_at,
  redactions.branch,
  redactions.seq

-- history.redaction.SET_REDACTED_TITLE
UPDATE sessions
SET title=:title,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id

-- history.redaction.SET_TOKEN_WEIGHT
UPDATE message_facts
SET role=:new_role,
  tokens=:weight
WHERE message_facts.tree_id = :tree
  AND message_facts.branch = :of
  AND message_facts.seq = :position

-- history.redaction.SHIFT_TOKEN_SUMS
UPDATE message_facts
SET tokens_through=(message_facts.tokens_through + :difference)
WHERE message_facts.tree_id = :tree
  AND message_facts.branch = :of
  AND message_facts.seq >= :position

-- history.redaction.STORED_ATTRIBUTES
SELECT messages.stored_at,
  messages.wire_format
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq = :seq

-- history.redaction.TOKEN_WEIGHT
SELECT message_facts.tokens
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq = :seq

-- history.redaction.TREE_TITLES
SELECT sessions.id,
  sessions.title
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.title IS NOT NULL
ORDER BY sessions.id

-- history.request_rows.DELETE_LEFT_REQUESTS
DELETE FROM requests
WHERE requests.tree_id = :tree_id
  AND requests.session_id = :session_id
  AND (
    requests.branch IN (
      SELECT CAST("left".value AS INTEGER) AS value
      FROM json_each(:left) AS "left"
    )
    OR (
      EXISTS (
        SELECT *
        FROM erasures
        WHERE erasures.tree_id = :tree_id
          AND erasures.erasure = :erasure
          AND erasures.branch = requests.branch
          AND (
            requests.seq > erasures.kept
            OR requests.seq = erasures.kept
            AND erasures.messages > 0
          )
      )
    )
  )

-- history.request_rows.DELETE_REQUESTS
DELETE FROM requests
WHERE requests.tree_id = :tree_id
  AND requests.session_id = :session_id

-- history.request_rows.DELETE_REQUEST_TEXT
DELETE FROM request_texts
WHERE request_texts.tree_id = :tree_id
  AND request_texts.text_digest = :text_digest

-- history.request_rows.INSERT_REQUEST
INSERT INTO requests (
  tree_id,
  session_id,
  request,
  branch,
  seq,
  at,
  newest_record,
  tokens,
  unchanged_tokens,
  kind,
  format,
  policy_name,
  release,
  digest,
  layers,
  compactions,
  texts,
  sealed
)
VALUES (
  :tree_id,
  :session_id,
  :request,
  :branch,
  :seq,
  :at,
  :newest_record,
  :tokens,
  :unchanged_tokens,
  :kind,
  :format,
  :policy_name,
  :release,
  :digest,
  :layers,
  :compactions,
  :texts,
  :sealed
)

-- history.request_rows.INSERT_REQUEST_TEXT
INSERT INTO request_texts (tree_id, text_digest, content, sealed)
VALUES (:tree_id, :text_digest, :content, :sealed)

-- history.request_rows.KNOWN_TEXTS
SELECT request_texts.text_digest
FROM request_texts
WHERE request_texts.tree_id = :tree_id
  AND request_texts.text_digest IN (
    SELECT named.value
    FROM json_each(:texts) AS named
  )

-- history.request_rows.LAST_NUMBER
SELECT max(requests.request) AS max_1
FROM requests
WHERE requests.tree_id = :tree_id
  AND requests.session_id = :session_id

-- history.request_rows.LAST_REQUEST
SELECT requests.request,
  requests.branch,
  requests.seq,
  requests.at,
  requests.newest_record,
  requests.tokens,
  requests.unchanged_tokens,
  requests.usage_branch,
  requests.usage_seq,
  requests.usage_number,
  requests.kind,
  requests.format,
  requests.policy_name,
  requests.release,
  requests.digest,
  requests.layers,
  requests.compactions,
  requests.texts
FROM requests
WHERE requests.tree_id = :tree_id
  AND requests.session_id = :session_id
ORDER BY requests.request DESC
LIMIT 1 OFFSET :param_1

-- history.request_rows.LINK_USAGE
UPDATE requests
SET usage_branch=:branch,
  usage_seq=:seq,
  usage_number=:usage
WHERE requests.tree_id = :tree
  AND requests.session_id = :session
  AND requests.request = :number

-- history.request_rows.LIST_REQUESTS
SELECT requests.request,
  requests.branch,
  requests.seq,
  requests.at,
  requests.newest_record,
  requests.tokens,
  requests.unchanged_tokens,
  requests.usage_branch,
  requests.usage_seq,
  requests.usage_number,
  requests.kind,
  requests.format,
  requests.policy_name,
  requests.release,
  requests.digest,
  requests.layers,
  requests.compactions,
  requests.texts
FROM requests
WHERE requests.tree_id = :tree_id
  AND requests.session_id = :session_id
  AND requests.request BETWEEN :start AND :stop
  AND requests.seq BETWEEN :first_seq AND :last_seq
ORDER BY requests.request DESC
LIMIT :limit OFFSET :param_1

-- history.request_rows.NAMED_TEXTS
SELECT requests.session_id,
  requests.seq,
  requests.texts
FROM requests
WHERE requests.tree_id = :tree_id
ORDER BY requests.session_id,
  requests.request

-- history.request_rows.REQUEST_NUMBERS
SELECT requests.session_id,
  requests.request
FROM requests
ORDER BY requests.tree_id,
  requests.session_id,
  requests.request

-- history.request_rows.REQUEST_TEXTS
SELECT request_texts.text_digest,
  request_texts.content
FROM request_texts
WHERE request_texts.tree_id = :tree_id
  AND request_texts.text_digest IN (
    SELECT named.value
    FROM json_each(:texts) AS named
  )

-- history.request_rows.STORED_TEXTS
SELECT request_texts.text_digest,
  request_texts.content
FROM request_texts
WHERE request_texts.tree_id = :tree_id
ORDER BY request_texts.text_digest

-- history.retention.ALL_BYTES.1
SELECT coalesce(
  sum(
    0 + coalesce(length(CAST(messages.content AS BLOB)), 0) + coalesce(length(CAST(messages.extra AS BLOB)), 0)
  ),
  0
) AS coalesce_1
FROM messages

-- history.retention.ALL_BYTES.2
SELECT coalesce(
  sum(
    0 + coalesce(length(CAST(tool_calls.arguments AS BLOB)), 0) + coalesce(length(CAST(tool_calls.extra AS BLOB)), 0)
  ),
  0
) AS coalesce_1
FROM tool_calls

-- history.retention.ALL_BYTES.3
SELECT CAST(
  coalesce(
    sum(
      (
        SELECT length(attachments.data) AS length_1
        FROM attachments
        WHERE attachments.tree_id = message_attachments.tree_id
          AND attachments.digest = message_attachments.digest
      ) / (
        SELECT count(*) AS count_1
        FROM message_attachments AS same
        WHERE same.tree_id = message_attachments.tree_id
          AND same.digest = message_attachments.digest
      )
    ),
    0
  ) AS INTEGER
) AS coalesce_1
FROM message_attachments

-- history.retention.COMPACTED_SESSIONS
SELECT compaction_records.session_id
FROM compaction_records
WHERE compaction_records.outcome = 'running'
  AND compaction_records.lease_until > :now

-- history.retention.IS_COMPACTED
SELECT compaction_records.session_id
FROM compaction_records
WHERE compaction_records.outcome = 'running'
  AND compaction_records.lease_until > :now
  AND compaction_records.tree_id = :tree_id
  AND compaction_records.session_id = :session_id

-- history.retention.RUN_BYTES.1
SELECT coalesce(
  sum(
    0 + coalesce(length(CAST(messages.content AS BLOB)), 0) + coalesce(length(CAST(messages.extra AS BLOB)), 0)
  ),
  0
) AS coalesce_1
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq > :kept
  AND messages.seq <= :end

-- history.retention.RUN_BYTES.2
SELECT coalesce(
  sum(
    0 + coalesce(length(CAST(tool_calls.arguments AS BLOB)), 0) + coalesce(length(CAST(tool_calls.extra AS BLOB)), 0)
  ),
  0
) AS coalesce_1
FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq > :kept
  AND tool_calls.seq <= :end

-- history.retention.RUN_BYTES.3
SELECT CAST(
  coalesce(
    sum(
      (
        SELECT length(attachments.data) AS length_1
        FROM attachments
        WHERE attachments.tree_id = :tree_id
          AND attachments.digest = message_attachments.digest
      ) / (
        SELECT count(*) AS count_1
        FROM message_attachments AS same
        WHERE same.tree_id = :tree_id
          AND same.digest = message_attachments.digest
      )
    ),
    0
  ) AS INTEGER
) AS coalesce_1
FROM message_attachments
WHERE message_attachments.tree_id = :tree_id
  AND message_attachments.branch = :branch
  AND message_attachments.seq > :kept
  AND message_attachments.seq <= :end

-- history.search_entries.ADD_ENTRY
INSERT INTO search_rows (tree_id, branch, seq, summary, number, words, names)
SELECT CAST(:tree_id AS bigint),
  CAST(:branch AS bigint),
  CAST(:seq AS bigint),
  CAST(:summary AS bigint),
  CAST(:number AS bigint),
  CAST(:words AS tsvector),
  CAST(:names AS text)
WHERE NOT EXISTS (
  SELECT 1
  FROM settings
  WHERE name = 'search'
    AND value = 'off'
) ON CONFLICT (tree_id, branch, seq, summary) DO NOTHING

-- history.search_entries.WRITE_ENTRY
INSERT INTO search_rows (tree_id, branch, seq, summary, number, words, names)
SELECT CAST(:tree_id AS bigint),
  CAST(:branch AS bigint),
  CAST(:seq AS bigint),
  CAST(:summary AS bigint),
  CAST(:number AS bigint),
  CAST(:words AS tsvector),
  CAST(:names AS text)
WHERE NOT EXISTS (
  SELECT 1
  FROM settings
  WHERE name = 'search'
    AND value = 'off'
) ON CONFLICT (tree_id, branch, seq, summary) DO UPDATE
SET words = excluded.words,
  names = excluded.names

-- history.session_branches.INHERITED_END
WITH RECURSIVE sources(generation, session_id, moves, records, before) AS (
  SELECT 0,
    sessions.id,
    COALESCE(
      (
        SELECT MAX(head_moves.move)
        FROM head_moves
        WHERE head_moves.tree_id = :tree_id
          AND head_moves.session_id = :session_id
      ),
      0
    ),
    :never,
    :never
  FROM sessions
  WHERE sessions.tree_id = :tree_id
    AND sessions.id = :session_id
  UNION ALL
  SELECT sources.generation + 1,
    fork.forked_from,
    forks.source_move,
    forks.source_record,
    forks.to_branch
  FROM sources
  JOIN sessions AS fork ON fork.tree_id = :tree_id
    AND fork.id = sources.session_id
  JOIN head_moves AS forks ON forks.tree_id = :tree_id
    AND forks.session_id = sources.session_id
    AND forks.move = 1
  WHERE forks.kind = 'fork'
    AND forks.source_move IS NOT NULL
    AND forks.to_branch < sources.before
),
gone(generation, session_id, moves, records, branch, move, head) AS (
  SELECT sources.generation,
    sources.session_id,
    sources.moves,
    sources.records,
    head_moves.from_branch,
    MAX(head_moves.move),
    MAX(head_moves.from_position)
  FROM sources
  JOIN head_moves ON head_moves.tree_id = :tree_id
    AND head_moves.session_id = sources.session_id
    AND head_moves.move <= sources.moves
  WHERE head_moves.kind <> 'fork'
    AND head_moves.from_branch < sources.before
  GROUP BY sources.generation,
    sources.session_id,
    sources.moves,
    sources.records,
    head_moves.from_branch
),
seen(
  branch,
  parent_branch,
  parent_position,
  head,
  left_at,
  records,
  generation,
  move
) AS (
  SELECT branches.branch,
    branches.parent_branch,
    branches.parent_position,
    sessions.head,
    NULL,
    :never,
    -1,
    0
  FROM sessions
  JOIN branches ON branches.tree_id = :tree_id
    AND branches.branch = sessions.head_branch
  WHERE sessions.tree_id = :tree_id
    AND sessions.id = :session_id
  UNION ALL
  SELECT branches.branch,
    branches.parent_branch,
    branches.parent_position,
    gone.head,
    leaving.moved_at,
    gone.records,
    gone.generation,
    gone.move
  FROM gone
  JOIN head_moves AS leaving ON leaving.tree_id = :tree_id
    AND leaving.session_id = gone.session_id
    AND leaving.move = gone.move
  JOIN branches ON branches.tree_id = :tree_id
    AND branches.branch = gone.branch
  WHERE NOT EXISTS (
    SELECT 1
    FROM head_moves AS last
    WHERE last.tree_id = :tree_id
      AND last.session_id = gone.session_id
      AND last.move = gone.moves
      AND last.to_branch = gone.branch
  )
    AND (
      gone.generation = 0
      OR gone.head > branches.parent_position
    )
    AND NOT EXISTS (
      SELECT 1
      FROM sources AS nearer
      JOIN branches AS own ON own.tree_id = :tree_id
        AND own.parent_branch = gone.branch
        AND own.parent_position = gone.head
        AND own.session_id = nearer.session_id
        AND own.branch < nearer.before
      WHERE nearer.generation < gone.generation
    )
)
SELECT parent_position,
  head,
  records
FROM seen
WHERE branch = :branch
  AND generation > 0

-- history.session_branches.OWN_BRANCH_END
SELECT branches.parent_position,
  (
    SELECT max(messages.seq) AS max_1
    FROM messages
    WHERE messages.tree_id = :tree_id
      AND messages.branch = :branch
  ) AS anon_1
FROM branches
WHERE branches.tree_id = :tree_id
  AND branches.branch = :branch
  AND branches.session_id = :session_id
  AND branches.branch >= coalesce(
    (
      SELECT max(first_moves.to_branch) AS max_2
      FROM (
        SELECT head_moves.kind AS kind,
          head_moves.to_branch AS to_branch
        FROM head_moves
        WHERE head_moves.tree_id = :tree_id
          AND head_moves.session_id = :session_id
        ORDER BY head_moves.move
        LIMIT 2 OFFSET :param_1
      ) AS first_moves
      WHERE first_moves.kind = 'forget'
    ),
    0
  )

-- history.session_branches.SESSION_BRANCHES
WITH RECURSIVE sources(generation, session_id, moves, records, before) AS (
  SELECT 0,
    sessions.id,
    COALESCE(
      (
        SELECT MAX(head_moves.move)
        FROM head_moves
        WHERE head_moves.tree_id = :tree_id
          AND head_moves.session_id = :session_id
      ),
      0
    ),
    :never,
    :never
  FROM sessions
  WHERE sessions.tree_id = :tree_id
    AND sessions.id = :session_id
  UNION ALL
  SELECT sources.generation + 1,
    fork.forked_from,
    forks.source_move,
    forks.source_record,
    forks.to_branch
  FROM sources
  JOIN sessions AS fork ON fork.tree_id = :tree_id
    AND fork.id = sources.session_id
  JOIN head_moves AS forks ON forks.tree_id = :tree_id
    AND forks.session_id = sources.session_id
    AND forks.move = 1
  WHERE forks.kind = 'fork'
    AND forks.source_move IS NOT NULL
    AND forks.to_branch < sources.before
),
gone(generation, session_id, moves, records, branch, move, head) AS (
  SELECT sources.generation,
    sources.session_id,
    sources.moves,
    sources.records,
    head_moves.from_branch,
    MAX(head_moves.move),
    MAX(head_moves.from_position)
  FROM sources
  JOIN head_moves ON head_moves.tree_id = :tree_id
    AND head_moves.session_id = sources.session_id
    AND head_moves.move <= sources.moves
  WHERE head_moves.kind <> 'fork'
    AND head_moves.from_branch < sources.before
  GROUP BY sources.generation,
    sources.session_id,
    sources.moves,
    sources.records,
    head_moves.from_branch
),
seen(
  branch,
  parent_branch,
  parent_position,
  head,
  left_at,
  records,
  generation,
  move
) AS (
  SELECT branches.branch,
    branches.parent_branch,
    branches.parent_position,
    sessions.head,
    NULL,
    :never,
    -1,
    0
  FROM sessions
  JOIN branches ON branches.tree_id = :tree_id
    AND branches.branch = sessions.head_branch
  WHERE sessions.tree_id = :tree_id
    AND sessions.id = :session_id
  UNION ALL
  SELECT branches.branch,
    branches.parent_branch,
    branches.parent_position,
    gone.head,
    leaving.moved_at,
    gone.records,
    gone.generation,
    gone.move
  FROM gone
  JOIN head_moves AS leaving ON leaving.tree_id = :tree_id
    AND leaving.session_id = gone.session_id
    AND leaving.move = gone.move
  JOIN branches ON branches.tree_id = :tree_id
    AND branches.branch = gone.branch
  WHERE NOT EXISTS (
    SELECT 1
    FROM head_moves AS last
    WHERE last.tree_id = :tree_id
      AND last.session_id = gone.session_id
      AND last.move = gone.moves
      AND last.to_branch = gone.branch
  )
    AND (
      gone.generation = 0
      OR gone.head > branches.parent_position
    )
    AND NOT EXISTS (
      SELECT 1
      FROM sources AS nearer
      JOIN branches AS own ON own.tree_id = :tree_id
        AND own.parent_branch = gone.branch
        AND own.parent_position = gone.head
        AND own.session_id = nearer.session_id
        AND own.branch < nearer.before
      WHERE nearer.generation < gone.generation
    )
)
SELECT branch,
  parent_branch,
  parent_position,
  head,
  left_at,
  generation < 0
FROM seen
ORDER BY branch

-- history.sessions.CLAIM_ID
INSERT INTO session_ids (id, tree_id)
VALUES (:id, :tree_id) ON CONFLICT DO NOTHING

-- history.sessions.DELETE_KEYS
DELETE FROM session_keys
WHERE session_keys.tree_id = :tree_id
  AND session_keys.session_id = :session_id

-- history.sessions.INSERT_BRANCH
INSERT INTO branches (
  tree_id,
  branch,
  parent_branch,
  parent_position,
  records_seen,
  session_id,
  created_at,
  sealed
)
VALUES (
  :tree_id,
  :branch,
  :parent_branch,
  :parent_position,
  :records_seen,
  :session_id,
  :created_at,
  :sealed
)

-- history.sessions.INSERT_KEYS
INSERT INTO session_keys (tree_id, session_id, "key", value)
VALUES (:tree_id, :session_id, :key, :value)

-- history.sessions.INSERT_SESSION
INSERT INTO sessions (
  tree_id,
  id,
  head_branch,
  head,
  last_rewind,
  created_at,
  updated_at,
  forked_from,
  forked_at,
  fold_case,
  title,
  project_root,
  metadata,
  revision,
  owner,
  archived,
  updated_second,
  source,
  file,
  sealed
)
VALUES (
  :tree_id,
  :id,
  :head_branch,
  :head,
  :last_rewind,
  :created_at,
  :updated_at,
  :forked_from,
  :forked_at,
  :fold_case,
  :title,
  :project_root,
  :metadata,
  :revision,
  :owner,
  :archived,
  :updated_second,
  :source,
  :file,
  :sealed
)

-- history.sessions.NEWEST_RECORD
SELECT compaction_records.compaction
FROM compaction_records
WHERE compaction_records.tree_id = :tree_id
ORDER BY compaction_records.compaction DESC
LIMIT 1 OFFSET :param_1

-- history.sessions.SESSIONS_OF_TREES
SELECT sessions.tree_id,
  sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.tree_id IN (
  SELECT CAST(trees.value AS INTEGER) AS value
  FROM json_each(:trees) AS trees
)
  AND sessions.id IN (
    SELECT ids.value
    FROM json_each(:ids) AS ids
  )
ORDER BY sessions.tree_id,
  sessions.id

-- history.sessions.SESSION_BY_ID
SELECT sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived,
  sessions.source AS source,
  sessions.file AS file
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.sessions.SESSION_OWNER
SELECT sessions.owner
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.sessions.SET_ARCHIVED
UPDATE sessions
SET revision=:revision,
  archived=:archived
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
RETURNING id AS id,
  title AS title,
  head AS head,
  project_root AS project_root,
  metadata AS metadata,
  created_at AS created_at,
  updated_at AS updated_at,
  forked_from AS forked_from,
  forked_at AS forked_at,
  head_branch AS branch,
  revision AS revision,
  owner AS owner,
  archived AS archived,
  source AS source,
  file AS file

-- history.sessions.SET_METADATA
UPDATE sessions
SET metadata=:metadata,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
RETURNING id AS id,
  title AS title,
  head AS head,
  project_root AS project_root,
  metadata AS metadata,
  created_at AS created_at,
  updated_at AS updated_at,
  forked_from AS forked_from,
  forked_at AS forked_at,
  head_branch AS branch,
  revision AS revision,
  owner AS owner,
  archived AS archived,
  source AS source,
  file AS file

-- history.sessions.SET_ORIGIN
UPDATE sessions
SET revision=:revision,
  source=:source,
  file=:file
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
RETURNING id AS id,
  title AS title,
  head AS head,
  project_root AS project_root,
  metadata AS metadata,
  created_at AS created_at,
  updated_at AS updated_at,
  forked_from AS forked_from,
  forked_at AS forked_at,
  head_branch AS branch,
  revision AS revision,
  owner AS owner,
  archived AS archived,
  source AS source,
  file AS file

-- history.sessions.SET_TITLE
UPDATE sessions
SET updated_at=:now,
  title=:title,
  revision=:revision,
  updated_second=(:now / 1000)
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
RETURNING id AS id,
  title AS title,
  head AS head,
  project_root AS project_root,
  metadata AS metadata,
  created_at AS created_at,
  updated_at AS updated_at,
  forked_from AS forked_from,
  forked_at AS forked_at,
  head_branch AS branch,
  revision AS revision,
  owner AS owner,
  archived AS archived,
  source AS source,
  file AS file

-- history.token_counts.COUNTED_TOTAL
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
SELECT count(*) AS count_1,
  CAST(coalesce(sum(token_counts.tokens), 0) AS INTEGER) AS coalesce_1
FROM segments
JOIN token_counts ON token_counts.tree_id = :tree_id
  AND token_counts.branch = segments.branch
  AND token_counts.seq BETWEEN segments.first AND segments.last
  AND token_counts.encoding = :encoding
WHERE EXISTS (
  SELECT *
  FROM branches AS theirs,
    sessions
  WHERE theirs.tree_id = :tree_id
    AND theirs.branch = segments.branch
    AND sessions.tree_id = theirs.tree_id
    AND sessions.id = theirs.session_id
    AND sessions.owner IS :owner
)

-- history.token_counts.INSERT_COUNTS
INSERT INTO token_counts (tree_id, branch, seq, encoding, tokens, sealed)
VALUES (:tree_id, :branch, :seq, :encoding, :tokens, :sealed)

-- history.token_counts.OTHER_OWNERS_RUNS
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
SELECT segments.first,
  segments.last
FROM segments
WHERE NOT (
  EXISTS (
    SELECT *
    FROM branches AS theirs,
      sessions
    WHERE theirs.tree_id = :tree_id
      AND theirs.branch = segments.branch
      AND sessions.tree_id = theirs.tree_id
      AND sessions.id = theirs.session_id
      AND sessions.owner IS :owner
  )
)
ORDER BY segments.first

-- history.token_counts.UNCOUNTED_MESSAGES
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
SELECT messages.branch,
  messages.seq
FROM segments
JOIN messages ON messages.tree_id = :tree_id
  AND messages.branch = segments.branch
  AND messages.seq BETWEEN segments.first AND segments.last
LEFT OUTER JOIN token_counts ON token_counts.tree_id = :tree_id
  AND token_counts.branch = messages.branch
  AND token_counts.seq = messages.seq
  AND token_counts.encoding = :encoding
WHERE token_counts.tokens IS NULL
  AND (
    EXISTS (
      SELECT *
      FROM branches AS theirs,
        sessions
      WHERE theirs.tree_id = :tree_id
        AND theirs.branch = segments.branch
        AND sessions.tree_id = theirs.tree_id
        AND sessions.id = theirs.session_id
        AND sessions.owner IS :owner
    )
  )
ORDER BY messages.seq
LIMIT :limit OFFSET :param_1

-- history.token_counts.UNCOUNTED_POSITION
SELECT messages.seq
FROM messages
LEFT OUTER JOIN token_counts ON token_counts.tree_id = :tree_id
  AND token_counts.branch = messages.branch
  AND token_counts.seq = messages.seq
  AND token_counts.encoding = :encoding
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq = :seq
  AND token_counts.tokens IS NULL

-- history.tool_use.ANSWERED_CALLS
SELECT json_group_array(seq),
  json_group_array(position),
  json_group_array(name),
  json_group_array(tool_name),
  json_group_array(arguments),
  json_group_array(failed),
  json_group_array(at),
  json_group_array(result_seq)
FROM (
  SELECT c.seq,
    c.position,
    c.name,
    r.tool_name,
    c.arguments,
    CASE
      WHEN ((r.error_prefix = 1) OR (r.status = 'error')) THEN 1
      WHEN (
        (:stderr_always = 1 AND r.has_stderr = 1)
        OR (
          :stderr_nonzero = 1
          AND r.has_stderr = 1
          AND (r.exit_code IS NULL OR r.exit_code <> 0)
        )
        OR (:exit_code_is_error = 1 AND r.exit_code <> 0)
      )
      AND (
        r.tool_name IN (
          SELECT name
          FROM tool_kinds
          WHERE kind = 'terminal'
        )
        OR (r.tool_name IS NULL AND r.looks_terminal = 1)
      ) THEN 1
      ELSE 0
    END AS failed,
    r.at,
    r.seq AS result_seq
  FROM tool_results r
  JOIN tool_calls c ON c.tree_id = :tree_id
    AND c.branch = :call_branch
    AND c.seq = r.call_seq + 0
    AND c.position = r.call_position
  WHERE r.tree_id = :tree_id
    AND r.branch = :branch
    AND r.seq BETWEEN :first AND :last
    AND r.call_seq BETWEEN :call_first AND :call_last
) AS found

-- history.tool_use.CALL_COUNT
SELECT COUNT(*)
FROM tool_calls c
WHERE c.tree_id = :tree_id
  AND c.branch = :branch
  AND c.seq BETWEEN :first AND :last

-- history.tool_use.FILE_USES
SELECT p.path,
  p.seq,
  r.call_seq,
  COALESCE(k.kind, 'other') AS kind,
  COALESCE(
    r.at,
    (
      SELECT t.stored_at
      FROM messages t
      WHERE t.tree_id = :tree_id
        AND t.branch = :branch
        AND t.seq = r.seq
    )
  ) AS at
FROM tool_result_paths p
JOIN tool_results r ON r.tree_id = :tree_id
  AND r.branch = :branch
  AND r.seq = p.seq
LEFT JOIN tool_kinds k ON k.name = r.tool_name
WHERE p.tree_id = :tree_id
  AND p.branch = :branch
  AND p.seq BETWEEN :first AND :last
  AND (:every = 1 OR p.path = :path)

-- history.tool_use.MOMENTS
SELECT json_group_array(moments.at) AS anon_1
FROM (
  SELECT m.seq AS seq,
    coalesce(m.created_at, m.stored_at) AS at
  FROM messages AS m
  WHERE m.tree_id = :tree_id
    AND m.branch = :branch
    AND m.seq BETWEEN :first AND :last
  ORDER BY m.seq
) AS moments

-- history.tool_use.STORED_CALL_PLACES
SELECT c.seq,
  c.position
FROM tool_calls c
WHERE c.tree_id = :tree_id
  AND c.branch = :branch
  AND c.seq BETWEEN :first AND :last

-- history.tree_search_entries.RUNS_WITHOUT_ENTRIES
SELECT m.branch,
  MIN(m.seq),
  MAX(m.seq)
FROM messages m
WHERE m.tree_id = :tree_id
  AND NOT EXISTS (
    SELECT 1
    FROM search_rows r
    WHERE r.tree_id = :tree_id
      AND r.branch = m.branch
      AND r.seq = m.seq
      AND r.summary = 0
  )
GROUP BY m.branch
ORDER BY m.branch

-- history.tree_search_entries.TREE_SUMMARY_TEXTS
SELECT s.branch,
  s.last,
  s.summary,
  s.title,
  s.body
FROM summaries s
WHERE s.tree_id = :tree_id
ORDER BY s.summary

-- history.usages.INSERT_USAGE
INSERT INTO usages (
  tree_id,
  branch,
  seq,
  usage,
  input,
  output,
  cached,
  at,
  written,
  cost,
  model,
  provider,
  details,
  base_model,
  sealed
)
VALUES (
  :tree_id,
  :branch,
  :seq,
  :usage,
  :input,
  :output,
  :cached,
  :at,
  :written,
  :cost,
  :model,
  :provider,
  :details,
  :base_model,
  :sealed
)

-- history.usages.LAST_NUMBERS
SELECT usages.seq,
  max(usages.usage % 4294967296) AS max_1
FROM usages
WHERE usages.tree_id = :tree_id
  AND usages.branch = :branch
  AND usages.seq BETWEEN :first AND :last
GROUP BY usages.seq

-- history.usages.LAST_USAGE
WITH RECURSIVE sources(generation, session_id, moves, records, before) AS (
  SELECT 0,
    sessions.id,
    COALESCE(
      (
        SELECT MAX(head_moves.move)
        FROM head_moves
        WHERE head_moves.tree_id = :tree_id
          AND head_moves.session_id = :session_id
      ),
      0
    ),
    :never,
    :never
  FROM sessions
  WHERE sessions.tree_id = :tree_id
    AND sessions.id = :session_id
  UNION ALL
  SELECT sources.generation + 1,
    fork.forked_from,
    forks.source_move,
    forks.source_record,
    forks.to_branch
  FROM sources
  JOIN sessions AS fork ON fork.tree_id = :tree_id
    AND fork.id = sources.session_id
  JOIN head_moves AS forks ON forks.tree_id = :tree_id
    AND forks.session_id = sources.session_id
    AND forks.move = 1
  WHERE forks.kind = 'fork'
    AND forks.source_move IS NOT NULL
    AND forks.to_branch < sources.before
),
line(branch, parent_branch, parent_position, session_id, last) AS (
  SELECT branches.branch,
    branches.parent_branch,
    branches.parent_position,
    branches.session_id,
    :last
  FROM branches
  WHERE branches.tree_id = :tree_id
    AND branches.branch = :branch
  UNION ALL
  SELECT parents.branch,
    parents.parent_branch,
    parents.parent_position,
    parents.session_id,
    CASE
      WHEN line.parent_position < line.last THEN line.parent_position
      ELSE line.last
    END
  FROM line
  JOIN branches AS parents ON parents.tree_id = :tree_id
    AND parents.branch = line.parent_branch
)
SELECT usages.seq,
  usages.input,
  usages.output,
  usages.at,
  usages.cached
FROM line
JOIN sources ON sources.session_id = line.session_id
  AND line.branch < sources.before CROSS
JOIN usages
WHERE usages.tree_id = :tree_id
  AND usages.branch = line.branch
  AND (usages.seq, usages.usage) = (
    SELECT newest.seq,
      newest.usage
    FROM usages AS newest
    WHERE newest.tree_id = :tree_id
      AND newest.branch = line.branch
      AND newest.seq <= line.last
      AND newest.usage / 4294967296 < sources.before
      AND newest.input > 0
    ORDER BY newest.seq DESC,
      newest.usage DESC
    LIMIT 1
  )
ORDER BY usages.seq DESC,
  usages.branch DESC,
  usages.usage DESC
LIMIT 1

-- history.usages.LIST_OWNED_USAGES
SELECT sessions.owner,
  sessions.id AS session_id,
  usages.branch AS branch,
  usages.seq AS seq,
  usages.model AS model,
  usages.provider AS provider,
  usages.input AS input,
  usages.output AS output,
  usages.cached AS cached,
  coalesce(usages.written, 0) AS written,
  usages.cost AS cost,
  usages.details AS details,
  usages.at AS at,
  usages.usage % 4294967296 AS number
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE sessions.owner = :owner
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage % 4294967296
LIMIT :limit OFFSET :param_1

-- history.usages.LIST_PLACED_USAGES
SELECT sessions.owner,
  sessions.id AS session_id,
  usages.branch AS branch,
  usages.seq AS seq,
  usages.model AS model,
  usages.provider AS provider,
  usages.input AS input,
  usages.output AS output,
  usages.cached AS cached,
  coalesce(usages.written, 0) AS written,
  usages.cost AS cost,
  usages.details AS details,
  usages.at AS at,
  usages.usage % 4294967296 AS number
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id
  AND usages.seq BETWEEN :first_seq AND :last_seq
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage % 4294967296
LIMIT :limit OFFSET :param_1

-- history.usages.LIST_SESSION_USAGES
SELECT sessions.owner,
  sessions.id AS session_id,
  usages.branch AS branch,
  usages.seq AS seq,
  usages.model AS model,
  usages.provider AS provider,
  usages.input AS input,
  usages.output AS output,
  usages.cached AS cached,
  coalesce(usages.written, 0) AS written,
  usages.cost AS cost,
  usages.details AS details,
  usages.at AS at,
  usages.usage % 4294967296 AS number
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage % 4294967296
LIMIT :limit OFFSET :param_1

-- history.usages.LIST_USAGES
SELECT sessions.owner,
  sessions.id AS session_id,
  usages.branch AS branch,
  usages.seq AS seq,
  usages.model AS model,
  usages.provider AS provider,
  usages.input AS input,
  usages.output AS output,
  usages.cached AS cached,
  coalesce(usages.written, 0) AS written,
  usages.cost AS cost,
  usages.details AS details,
  usages.at AS at,
  usages.usage % 4294967296 AS number
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE usages.at >= :since
  AND usages.at < :until
  AND usages.at >= :seen_at
  AND (
    usages.at,
    sessions.id,
    usages.branch,
    usages.seq,
    usages.usage % 4294967296
  ) > (
    :seen_at,
    :seen_session_id,
    :seen_branch,
    :seen_seq,
    :seen_number
  )
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage % 4294967296
LIMIT :limit OFFSET :param_1

-- history.usages.LIST_USAGE_PLACES
SELECT numbered.request,
  numbered.branch,
  numbered.seq,
  numbered.number
FROM (
  SELECT row_number() OVER (
    ORDER BY usages.at,
      sessions.id,
      usages.branch,
      usages.seq,
      usages.usage % 4294967296
  ) AS request,
    usages.branch AS branch,
    usages.seq AS seq,
    usages.usage % 4294967296 AS number
  FROM usages
  JOIN branches ON branches.tree_id = usages.tree_id
    AND branches.branch = usages.branch
  JOIN sessions ON sessions.tree_id = branches.tree_id
    AND sessions.id = branches.session_id
  WHERE sessions.tree_id = :tree_id
    AND sessions.id = :session_id
) AS numbered
WHERE numbered.request BETWEEN :start AND :stop
  AND numbered.seq BETWEEN :first_seq AND :last_seq
ORDER BY numbered.request DESC
LIMIT :limit OFFSET :param_1

-- history.usages.NEWEST_BRANCH
SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch DESC
LIMIT 1 OFFSET :param_1

-- history.usages.SUM_OWNED_USAGES
SELECT usages.model AS model,
  NULL AS session,
  NULL AS owner,
  NULL AS project,
  NULL AS source,
  NULL AS day,
  NULL AS quarter,
  NULL AS parts,
  count(*) AS requests,
  CAST(sum(usages.input) AS INTEGER) AS input,
  CAST(sum(usages.output) AS INTEGER) AS output,
  CAST(sum(usages.cached) AS INTEGER) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS INTEGER) AS written,
  sum(usages.cost) AS paid
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE sessions.owner = :owner
GROUP BY usages.model,
  usages.cost IS NULL

-- history.usages.SUM_SESSION_USAGES
SELECT usages.model AS model,
  NULL AS session,
  NULL AS owner,
  NULL AS project,
  NULL AS source,
  NULL AS day,
  NULL AS quarter,
  NULL AS parts,
  count(*) AS requests,
  CAST(sum(usages.input) AS INTEGER) AS input,
  CAST(sum(usages.output) AS INTEGER) AS output,
  CAST(sum(usages.cached) AS INTEGER) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS INTEGER) AS written,
  sum(usages.cost) AS paid
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id
GROUP BY usages.model,
  usages.cost IS NULL

-- history.usages.SUM_USAGES_BY_DAY
SELECT usages.model AS model,
  NULL AS session,
  NULL AS owner,
  NULL AS project,
  NULL AS source,
  usages.at / 86400000 AS day,
  NULL AS quarter,
  NULL AS parts,
  count(*) AS requests,
  CAST(sum(usages.input) AS INTEGER) AS input,
  CAST(sum(usages.output) AS INTEGER) AS output,
  CAST(sum(usages.cached) AS INTEGER) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS INTEGER) AS written,
  sum(usages.cost) AS paid
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE usages.at >= :since
  AND usages.at < :until
GROUP BY usages.model,
  usages.at / 86400000,
  usages.cost IS NULL

-- history.view_cache.POINTER_AND_STATE
SELECT sessions.tree_id,
  sessions.id,
  sessions.head_branch,
  sessions.head,
  branches.parent_position,
  sessions.last_rewind,
  sessions.project_root,
  sessions.fold_case,
  message_facts.turn,
  message_facts.tokens_through,
  sessions.revision,
  sessions.owner,
  4611686018427387904 AS newest,
  sessions.updated_second,
  (
    SELECT count(*) AS count_1
    FROM redactions
    WHERE redactions.tree_id = :tree_id
  ) AS redactions,
  coalesce(
    (
      SELECT max(erasures.erasure) AS max_1
      FROM erasures
      WHERE erasures.tree_id = :tree_id
    ),
    0
  ) AS erasures,
  EXISTS (
    SELECT *
    FROM compaction_records
    WHERE compaction_records.tree_id = :tree_id
  ) AS has_records,
  EXISTS (
    SELECT *
    FROM usages
    WHERE usages.tree_id = :tree_id
  ) AS has_usages,
  EXISTS (
    SELECT *
    FROM token_counts
    WHERE token_counts.tree_id = :tree_id
  ) AS has_counts
FROM sessions
JOIN branches ON branches.tree_id = sessions.tree_id
  AND branches.branch = sessions.head_branch
LEFT OUTER JOIN message_facts ON message_facts.tree_id = sessions.tree_id
  AND message_facts.branch = sessions.head_branch
  AND message_facts.seq = sessions.head
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id

-- history.view_cache.STATE_OF_TREE
SELECT (
  SELECT count(*) AS count_1
  FROM redactions
  WHERE redactions.tree_id = :tree_id
) AS redactions,
  coalesce(
    (
      SELECT max(erasures.erasure) AS max_1
      FROM erasures
      WHERE erasures.tree_id = :tree_id
    ),
    0
  ) AS erasures,
  EXISTS (
    SELECT *
    FROM compaction_records
    WHERE compaction_records.tree_id = :tree_id
  ) AS has_records,
  EXISTS (
    SELECT *
    FROM usages
    WHERE usages.tree_id = :tree_id
  ) AS has_usages,
  EXISTS (
    SELECT *
    FROM token_counts
    WHERE token_counts.tree_id = :tree_id
  ) AS has_counts

