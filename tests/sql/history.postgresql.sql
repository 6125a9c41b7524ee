-- history.append.MESSAGE_LOCATIONS
SELECT messages.message_id,
  messages.branch,
  messages.seq,
  messages.digest,
  messages.stored_at
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.message_id = ANY(
    ARRAY(
      SELECT json_array_elements_text(CAST(:ids AS json))
    )
  )

-- history.append.MOVE_HEAD
UPDATE sessions
SET head=:to,
  updated_at=:now,
  revision=:revision,
  updated_second=(:now / 1000)
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"

-- history.append.MOVE_HEAD_WITHIN_SECOND
UPDATE sessions
SET head=:to,
  updated_at=:now,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"

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
    SELECT CAST(wanted.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(:wanted AS json)) AS wanted
  )
  AND message_attachments.position BETWEEN :least_position AND :most_position
ORDER BY message_attachments.seq,
  message_attachments.position

-- history.attachments.DELETE_ATTACHMENT_PLACES
SELECT redact_attachments(:tree_id, :branch, :seq) AS redact_attachments_1

-- history.attachments.DELETE_UNUSED_ATTACHMENTS
SELECT erase_attachments(:tree_id, 8) AS erase_attachments_1

-- history.branch_erasure.DELETE_LEFT_ROWS.1
DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft IN (
    SELECT drafts.draft
    FROM drafts
    WHERE drafts.tree_id = :tree_id
      AND drafts.session_id = :session_id COLLATE "C"
      AND (
        drafts.branch IN (
          SELECT CAST("left".value AS BIGINT) AS value
          FROM json_array_elements_text(CAST(:left AS json)) AS "left"
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
  AND drafts.session_id = :session_id COLLATE "C"
  AND (
    drafts.branch IN (
      SELECT CAST("left".value AS BIGINT) AS value
      FROM json_array_elements_text(CAST(:left AS json)) AS "left"
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
  AND running_bills.session_id = :session_id COLLATE "C"
  AND (
    running_bills.branch IN (
      SELECT CAST("left".value AS BIGINT) AS value
      FROM json_array_elements_text(CAST(:left AS json)) AS "left"
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
  AND head_moves.session_id = :session_id COLLATE "C"
  AND head_moves.kind != 'fork'

-- history.branch_erasure.DISOWN_LEFT_BRANCHES
UPDATE branches
SET session_id=:session_id COLLATE "C"
WHERE branches.tree_id = :tree
  AND branches.session_id = :owner COLLATE "C"
  AND branches.branch IN (
    SELECT CAST("left".value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(:left AS json)) AS "left"
  )

-- history.branch_erasure.SET_NO_UNDO
UPDATE sessions
SET last_rewind=NULL,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"

-- history.draft_leases.RENEW_LEASE
UPDATE drafts
SET live_until=(
  CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) + 4000
)
WHERE drafts.tree_id = :tree_id
  AND drafts.draft = :draft

-- history.draft_leases.WRITTEN_DRAFTS
SELECT drafts.draft,
  drafts.writer,
  drafts.live_until - CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS "left"
FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id COLLATE "C"
  AND drafts.writer IS NOT NULL

-- history.draft_leases.WRITTEN_MOMENTS
SELECT drafts.draft,
  drafts.writer,
  drafts.live_until - CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS "left",
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
  drafts.live_until - CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS "left"
FROM drafts

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
  drafts.live_until - CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS "left"
FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.draft = :draft

-- history.drafts.DRAFT_PIECES
SELECT draft_pieces.at,
  draft_pieces.key,
  draft_pieces.text
FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft = :draft
ORDER BY draft_pieces.piece

-- history.drafts.DRAFT_STATES
SELECT drafts.draft,
  drafts.writer,
  drafts.live_until - CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS "left",
  drafts.at,
  (
    SELECT coalesce(max(draft_pieces.piece), 0) AS coalesce_1
    FROM draft_pieces
    WHERE draft_pieces.tree_id = :tree_id
      AND draft_pieces.draft = drafts.draft
  ) AS anon_1
FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id COLLATE "C"
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
  :session_id COLLATE "C",
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
INSERT INTO draft_pieces (tree_id, draft, piece, at, key, text, sealed)
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
  drafts.live_until - CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS "left"
FROM drafts
JOIN sessions ON sessions.tree_id = drafts.tree_id
  AND sessions.id = drafts.session_id
  AND sessions.owner = :owner COLLATE "C"

-- history.drafts.PIECES_AFTER
SELECT draft_pieces.piece,
  draft_pieces.key,
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
  drafts.live_until - CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS "left"
FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id COLLATE "C"

-- history.erasure.DELETE_RECORDS
SELECT erase_compaction_records(:tree_id, :branch, :kept) AS erase_compaction_records_1

-- history.erasure.DELETE_SESSION.1
DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft IN (
    SELECT drafts.draft
    FROM drafts
    WHERE drafts.tree_id = :tree_id
      AND drafts.session_id = :session_id COLLATE "C"
  )

-- history.erasure.DELETE_SESSION.2
DELETE FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id COLLATE "C"

-- history.erasure.DELETE_SESSION.3
DELETE FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.session_id = :session_id COLLATE "C"

-- history.erasure.DELETE_SESSION.4
DELETE FROM running_bills
WHERE running_bills.tree_id = :tree_id
  AND running_bills.session_id = :session_id COLLATE "C"

-- history.erasure.DELETE_SESSION.5
DELETE FROM session_keys
WHERE session_keys.tree_id = :tree_id
  AND session_keys.session_id = :session_id COLLATE "C"

-- history.erasure.DELETE_SESSION.6
DELETE FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id COLLATE "C"

-- history.erasure.DELETE_SESSION.7
DELETE FROM session_ids
WHERE session_ids.tree_id = :tree_id
  AND session_ids.id = :session_id COLLATE "C"

-- history.erasure.DISOWN_BRANCHES
UPDATE branches
SET session_id=:session_id COLLATE "C"
WHERE branches.tree_id = :tree
  AND branches.session_id = :owner COLLATE "C"

-- history.erasure.ERASURE
SELECT erasures.session_id,
  CAST(sum(erasures.messages) AS BIGINT) AS removed,
  CAST(sum(erasures.kept_messages) AS BIGINT) AS kept,
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
  CAST(sum(erasures.messages) AS BIGINT) AS removed,
  CAST(sum(erasures.kept_messages) AS BIGINT) AS kept,
  max(erasures.newest_copy) AS newest_copy,
  count(*) - count(erasures.finished_at) AS unfinished,
  count(*) - count(erasures.purged_at) AS unpurged
FROM erasures
GROUP BY erasures.tree_id,
  erasures.erasure,
  erasures.session_id
ORDER BY min(erasures.started_at),
  erasures.session_id

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
  :session_id COLLATE "C",
  :kept,
  :messages,
  :kept_messages,
  :started_at,
  :newest_copy,
  :sealed
)

-- history.erasure_batches.DELETE_ROWS_BEYOND.7
SELECT erase_tool_calls(:tree_id, :branch, :kept) AS erased

-- history.erasure_batches.DELETE_ROWS_BEYOND.8
SELECT erase_message_attachments(:tree_id, :branch, :kept) AS erased

-- history.erasure_batches.DELETE_ROWS_BEYOND.9
SELECT erase_messages(:tree_id, :branch, :kept) AS erased

-- history.erasure_batches.DELETE_SUMMARIES
SELECT erase_summaries(:tree_id, :branch, 16) AS erase_summaries_1

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
LIMIT 1

-- history.facts.LAST_ANSWER_POSITION
SELECT message_facts.seq
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
  AND message_facts.role = 'assistant'
ORDER BY message_facts.seq DESC
LIMIT 1

-- history.facts.LAST_USER_POSITION
SELECT message_facts.seq
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
  AND message_facts.role = 'user'
ORDER BY message_facts.seq DESC
LIMIT 1

-- history.facts.POSITION_TOKENS
SELECT CAST(coalesce(sum(message_facts.tokens), 0) AS BIGINT) AS coalesce_1
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq = :seq

-- history.facts.TOOL_KINDS_JSON
SELECT COALESCE(
  CAST(json_object_agg(tool_kinds.name, tool_kinds.kind) AS text),
  '{}'
) AS anon_1
FROM tool_kinds

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
  AND head_moves.session_id = :session_id COLLATE "C"
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
  :session_id COLLATE "C",
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
  LIMIT 1
) + 1 AS branch,
  coalesce(
    (
      SELECT head_moves.move
      FROM head_moves
      WHERE head_moves.tree_id = :tree_id
        AND head_moves.session_id = :session_id COLLATE "C"
      ORDER BY head_moves.move DESC
      LIMIT 1
    ),
    0
  ) + 1 AS move,
  coalesce(
    (
      SELECT compaction_records.compaction
      FROM compaction_records
      WHERE compaction_records.tree_id = :tree_id
      ORDER BY compaction_records.compaction DESC
      LIMIT 1
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
  AND undone.session_id = :session_id COLLATE "C"
  AND undone.move = (
    SELECT head_session.last_rewind
    FROM sessions AS head_session
    WHERE head_session.tree_id = :tree_id
      AND head_session.id = :session_id COLLATE "C"
  )
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id COLLATE "C"

-- history.heads.SET_HEAD
UPDATE sessions
SET head_branch=:branch,
  head=:to,
  last_rewind=:rewind,
  updated_at=:now,
  revision=:revision,
  updated_second=(:now / 1000)
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"

-- history.imported_files.DELETE_STATE
DELETE FROM settings
WHERE settings.name = :setting COLLATE "C"

-- history.imported_files.FILE_OF_SESSION
SELECT sessions.file,
  sessions.owner
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.file IS NOT NULL
  AND sessions.id = :session_id COLLATE "C"

-- history.imported_files.INSERT_STATE
INSERT INTO settings (name, value)
VALUES (:setting COLLATE "C", :state)

-- history.imported_files.LOAD_STATE
SELECT settings.value
FROM settings
WHERE settings.name = :setting COLLATE "C"

-- history.kept_usages.DELETE_OWNED_USAGES
DELETE FROM kept_usages
WHERE kept_usages.owner = :kept_owner COLLATE "C"

-- history.kept_usages.EMPTY_OWNED_USAGES
UPDATE kept_usages
SET owner=NULL,
  project_root=NULL
WHERE kept_usages.owner = :kept_owner COLLATE "C"

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
  :base_model COLLATE "C",
  :source COLLATE "C",
  :owner COLLATE "C",
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
  CAST(sum(usages.input) AS BIGINT) AS input,
  CAST(sum(usages.output) AS BIGINT) AS output,
  CAST(sum(usages.cached) AS BIGINT) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS BIGINT) AS written,
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
  AND branches.session_id = :session_id COLLATE "C"
  AND erased.tree_id = :tree_id
  AND (
    usages.branch IN (
      SELECT CAST("left".value AS BIGINT) AS value
      FROM json_array_elements_text(CAST(:left AS json)) AS "left"
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
  CAST(sum(usages.input) AS BIGINT) AS input,
  CAST(sum(usages.output) AS BIGINT) AS output,
  CAST(sum(usages.cached) AS BIGINT) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS BIGINT) AS written,
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
  AND branches.session_id = :session_id COLLATE "C"
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
  CAST(sum(kept_usages.requests) AS BIGINT) AS sum_1,
  CAST(sum(kept_usages.input) AS BIGINT) AS sum_2,
  CAST(sum(kept_usages.output) AS BIGINT) AS sum_3,
  CAST(sum(kept_usages.cached) AS BIGINT) AS sum_4,
  CAST(sum(kept_usages.written) AS BIGINT) AS sum_5,
  CAST(sum(kept_usages.cost) AS DOUBLE PRECISION) AS sum_6
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
  CAST(sum(kept_usages.requests) AS BIGINT) AS sum_1,
  CAST(sum(kept_usages.input) AS BIGINT) AS sum_2,
  CAST(sum(kept_usages.output) AS BIGINT) AS sum_3,
  CAST(sum(kept_usages.cached) AS BIGINT) AS sum_4,
  CAST(sum(kept_usages.written) AS BIGINT) AS sum_5,
  CAST(sum(kept_usages.cost) AS DOUBLE PRECISION) AS sum_6
FROM kept_usages
WHERE kept_usages.owner = :owner COLLATE "C"
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
  NOT pg_try_advisory_xact_lock(1936024947, CAST(sessions.tree_id % 256 AS INTEGER)) AS is_heard
FROM sessions
JOIN branches ON branches.tree_id = sessions.tree_id
  AND branches.branch = sessions.head_branch
LEFT OUTER JOIN message_facts ON message_facts.tree_id = sessions.tree_id
  AND message_facts.branch = sessions.head_branch
  AND message_facts.seq = sessions.head
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id COLLATE "C"

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
  NOT pg_try_advisory_xact_lock(1936024947, CAST(sessions.tree_id % 256 AS INTEGER)) AS is_heard
FROM sessions
JOIN branches ON branches.tree_id = sessions.tree_id
  AND branches.branch = sessions.head_branch
LEFT OUTER JOIN message_facts ON message_facts.tree_id = sessions.tree_id
  AND message_facts.branch = sessions.head_branch
  AND message_facts.seq = sessions.head
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id COLLATE "C"
FOR UPDATE OF sessions

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
  AND sessions.id = :session_id COLLATE "C"

-- history.lines.SEGMENTS
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
SELECT segments.branch,
  segments.first,
  segments.last
FROM segments
ORDER BY segments.first

-- history.lines.SESSION_LOCK
SELECT sessions.tree_id
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id COLLATE "C"
FOR UPDATE

-- history.lines.TREES_OF_SESSIONS
SELECT session_ids.tree_id
FROM session_ids
WHERE session_ids.id IN (
  SELECT ids.value
  FROM json_array_elements_text(CAST(:ids AS json)) AS ids
)

-- history.lines.TREE_AND_SESSION_LOCK
SELECT branches.branch
FROM branches
JOIN sessions ON sessions.tree_id = :tree_id
  AND sessions.id = :session_id
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch
LIMIT 1
FOR NO KEY UPDATE OF branches
FOR UPDATE OF sessions

-- history.lines.TREE_LOCK
SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch
LIMIT 1
FOR NO KEY UPDATE

-- history.lines.TREE_OF_SESSION
SELECT session_ids.tree_id
FROM session_ids
WHERE session_ids.id = :session_id COLLATE "C"

-- history.listing.COUNT_FOUND
SELECT count(*) AS count_1
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.updated_second >= :since / 1000
  AND sessions.updated_at >= :since
  AND sessions.updated_second <= :until / 1000
  AND sessions.updated_at < :until
  AND sessions.source = :source COLLATE "C"
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
  AND sessions.owner = :owner COLLATE "C"

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
LIMIT :limit

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
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id COLLATE "C")
ORDER BY sessions.updated_second DESC
LIMIT :limit

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
  AND (sessions.created_at, sessions.id) < (:moment, :id COLLATE "C")
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT :limit

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
  AND sessions.source = :source COLLATE "C"
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
          AND session_keys.key = '"parent_session"'
      )
    )
  )
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id COLLATE "C")
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit

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
  AND sessions.owner = :owner COLLATE "C"
  AND (sessions.created_at, sessions.id) < (:moment, :id COLLATE "C")
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT :limit

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
  AND sessions.owner = :owner COLLATE "C"
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
LIMIT :limit

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
  AND sessions.owner = :owner COLLATE "C"
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id COLLATE "C")
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit

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
  AND sessions.owner = :owner COLLATE "C"
  AND (
    EXISTS (
      SELECT *
      FROM session_keys AS of_key1
      WHERE of_key1.tree_id = sessions.tree_id
        AND of_key1.session_id = sessions.id
        AND of_key1.key = :key1 COLLATE "C"
        AND of_key1.value = :value_of_key1 COLLATE "C"
    )
  )
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id COLLATE "C")
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit

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
WHERE sessions.id >= :prefix COLLATE "C"
  AND sessions.id < :end COLLATE "C"
  AND sessions.archived + 0 = :archived
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit

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
LIMIT :limit

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
  AND (sessions.updated_second, sessions.updated_at, sessions.id) < (:moment / 1000, :moment, :id COLLATE "C")
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit

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
  AND first.key = :key1 COLLATE "C"
  AND first.value = :value_of_key1 COLLATE "C"
WHERE sessions.archived + 0 = :archived
  AND (
    EXISTS (
      SELECT *
      FROM session_keys AS of_key2
      WHERE of_key2.tree_id = sessions.tree_id
        AND of_key2.session_id = sessions.id
        AND of_key2.key = :key2 COLLATE "C"
        AND of_key2.value = :value_of_key2 COLLATE "C"
    )
  )
ORDER BY sessions.updated_second DESC,
  sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit

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
LIMIT :limit

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
  JOIN LATERAL (
    SELECT *
    FROM sessions AS fork
    WHERE fork.tree_id = :tree_id
      AND fork.id = sources.session_id OFFSET 0
  ) AS fork ON true
  JOIN LATERAL (
    SELECT *
    FROM head_moves AS forks
    WHERE forks.tree_id = :tree_id
      AND forks.session_id = sources.session_id
      AND forks.move = 1 OFFSET 0
  ) AS forks ON true
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
walk(line, branch, parent_position, last) AS (
  SELECT branch,
    branch,
    parent_position,
    head
  FROM seen
  WHERE head >= :seq - 1
  UNION ALL
  SELECT seen.branch,
    a.ancestor,
    a.first - 1,
    a.last
  FROM seen
  JOIN ancestors AS a ON a.tree_id = :tree_id
    AND a.branch = seen.branch
    AND a.level = 0
  WHERE seen.head >= :seq - 1
    AND a.last >= :seq - 1
    AND a.first <= :seq
  UNION ALL
  SELECT seen.branch,
    a.ancestor,
    a.first - 1,
    a.last
  FROM seen
  JOIN ancestors AS b ON b.tree_id = :tree_id
    AND b.branch = seen.branch
    AND b.level = 1
  JOIN ancestors AS a ON a.tree_id = :tree_id
    AND a.branch = b.ancestor
    AND a.level = 0
  WHERE seen.head >= :seq - 1
    AND a.last >= :seq - 1
    AND a.first <= :seq
  UNION ALL
  SELECT seen.branch,
    a.ancestor,
    a.first - 1,
    a.last
  FROM seen
  JOIN ancestors AS c ON c.tree_id = :tree_id
    AND c.branch = seen.branch
    AND c.level = 2
  JOIN ancestors AS b ON b.tree_id = :tree_id
    AND b.branch = c.ancestor
    AND b.level = 1
  JOIN ancestors AS a ON a.tree_id = :tree_id
    AND a.branch = b.ancestor
    AND a.level = 0
  WHERE seen.head >= :seq - 1
    AND a.last >= :seq - 1
    AND a.first <= :seq
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
SELECT through.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (through.own_branch = through.head_branch) THEN through.own_branch
      END
    ),
    max(through.own_branch)
  ) AS branch,
  through.seq
FROM (
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = messages.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_0.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_1.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN ancestors AS level_2 ON level_2.tree_id = messages.tree_id
    AND level_2.level = 2
    AND level_2.ancestor = level_1.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_2.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
) AS through
GROUP BY through.id,
  through.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.updated_at DESC,
  through.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_OWNED_MESSAGES
SELECT through.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (through.own_branch = through.head_branch) THEN through.own_branch
      END
    ),
    max(through.own_branch)
  ) AS branch,
  through.seq
FROM (
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = messages.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND sessions.owner = :owner COLLATE "C"
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_0.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND sessions.owner = :owner COLLATE "C"
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_1.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND sessions.owner = :owner COLLATE "C"
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN ancestors AS level_2 ON level_2.tree_id = messages.tree_id
    AND level_2.level = 2
    AND level_2.ancestor = level_1.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_2.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND sessions.owner = :owner COLLATE "C"
) AS through
GROUP BY through.id,
  through.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.updated_at DESC,
  through.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_OWNED_PREFIX
SELECT through.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (through.own_branch = through.head_branch) THEN through.own_branch
      END
    ),
    max(through.own_branch)
  ) AS branch,
  through.seq
FROM (
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = messages.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
    AND sessions.owner = :owner COLLATE "C"
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_0.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
    AND sessions.owner = :owner COLLATE "C"
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_1.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
    AND sessions.owner = :owner COLLATE "C"
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN ancestors AS level_2 ON level_2.tree_id = messages.tree_id
    AND level_2.level = 2
    AND level_2.ancestor = level_1.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_2.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
    AND sessions.owner = :owner COLLATE "C"
) AS through
GROUP BY through.id,
  through.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.message_id COLLATE "C",
  through.updated_at DESC,
  through.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_PREFIX
SELECT through.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (through.own_branch = through.head_branch) THEN through.own_branch
      END
    ),
    max(through.own_branch)
  ) AS branch,
  through.seq
FROM (
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = messages.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_0.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_1.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN ancestors AS level_2 ON level_2.tree_id = messages.tree_id
    AND level_2.level = 2
    AND level_2.ancestor = level_1.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_2.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
) AS through
GROUP BY through.id,
  through.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.message_id COLLATE "C",
  through.updated_at DESC,
  through.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_TREE_MESSAGES
SELECT through.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (through.own_branch = through.head_branch) THEN through.own_branch
      END
    ),
    max(through.own_branch)
  ) AS branch,
  through.seq
FROM (
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = messages.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND messages.tree_id = :tree_id
    AND sessions.tree_id = :tree_id
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_0.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND messages.tree_id = :tree_id
    AND sessions.tree_id = :tree_id
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_1.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND messages.tree_id = :tree_id
    AND sessions.tree_id = :tree_id
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN ancestors AS level_2 ON level_2.tree_id = messages.tree_id
    AND level_2.level = 2
    AND level_2.ancestor = level_1.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_2.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id IN (:message_id, :neutral_id)
    AND messages.tree_id = :tree_id
    AND sessions.tree_id = :tree_id
) AS through
GROUP BY through.id,
  through.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.updated_at DESC,
  through.id DESC,
  through.seq DESC

-- history.message_lookup.FIND_TREE_PREFIX
SELECT through.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (through.own_branch = through.head_branch) THEN through.own_branch
      END
    ),
    max(through.own_branch)
  ) AS branch,
  through.seq
FROM (
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = messages.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
    AND messages.tree_id = :tree_id
    AND sessions.tree_id = :tree_id
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_0.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
    AND messages.tree_id = :tree_id
    AND sessions.tree_id = :tree_id
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_1.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
    AND messages.tree_id = :tree_id
    AND sessions.tree_id = :tree_id
  UNION ALL
  SELECT sessions.id AS id,
    sessions.updated_at AS updated_at,
    sessions.head_branch AS head_branch,
    own.branch AS own_branch,
    messages.seq AS seq,
    messages.branch AS holder,
    messages.message_id AS message_id
  FROM messages
  JOIN ancestors AS level_0 ON level_0.tree_id = messages.tree_id
    AND level_0.level = 0
    AND level_0.ancestor = messages.branch
    AND level_0.last >= messages.seq
  JOIN ancestors AS level_1 ON level_1.tree_id = messages.tree_id
    AND level_1.level = 1
    AND level_1.ancestor = level_0.branch
  JOIN ancestors AS level_2 ON level_2.tree_id = messages.tree_id
    AND level_2.level = 2
    AND level_2.ancestor = level_1.branch
  JOIN branches AS own ON own.tree_id = messages.tree_id
    AND own.branch = level_2.branch
  JOIN sessions ON sessions.tree_id = own.tree_id
    AND sessions.id = own.session_id
  WHERE messages.message_id COLLATE "C" >= :prefix
    AND messages.message_id COLLATE "C" < :end
    AND messages.tree_id = :tree_id
    AND sessions.tree_id = :tree_id
) AS through
GROUP BY through.id,
  through.updated_at,
  through.holder,
  through.seq,
  through.message_id
ORDER BY through.message_id COLLATE "C",
  through.updated_at DESC,
  through.id DESC,
  through.seq DESC

-- history.message_lookup.FIRST_TURN_POSITION
SELECT message_facts.seq
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
  AND message_facts.turn > 0
ORDER BY message_facts.seq
LIMIT 1

-- history.message_notes.DELETE_NOTE
DELETE FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.branch = :branch
  AND notes.seq = :seq
  AND notes.key = :key COLLATE "C"
  AND notes.owner IS NOT DISTINCT FROM :owner COLLATE "C"

-- history.message_notes.DELETE_UNREACHABLE_NOTES
DELETE FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.session_id = :session_id COLLATE "C"
  AND NOT (
    EXISTS (
      SELECT *
      FROM sessions
      WHERE sessions.tree_id = :tree_id
        AND sessions.owner IS NOT DISTINCT FROM notes.owner
    )
  )

-- history.message_notes.INSERT_NOTE
INSERT INTO notes (
  tree_id,
  branch,
  seq,
  note,
  key,
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
  :key COLLATE "C",
  :session_id COLLATE "C",
  :owner COLLATE "C",
  :at,
  :value,
  :sealed
)

-- history.message_notes.LINE_NOTES
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
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes.key,
  notes.value,
  notes.at
FROM segments
JOIN notes ON notes.tree_id = :tree_id
  AND notes.branch = segments.branch
  AND notes.seq BETWEEN segments.first AND segments.last
  AND notes.owner IS NOT DISTINCT FROM :owner COLLATE "C"
ORDER BY notes.seq,
  notes.key

-- history.message_notes.LINE_NOTES_AT
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
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes.key,
  notes.value,
  notes.at
FROM segments
JOIN notes ON notes.tree_id = :tree_id
  AND notes.branch = segments.branch
  AND notes.seq BETWEEN segments.first AND segments.last
  AND notes.owner IS NOT DISTINCT FROM :owner COLLATE "C"
WHERE notes.seq = :seq
ORDER BY notes.seq,
  notes.key

-- history.message_notes.LINE_NOTES_OF_KEY
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
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes.key,
  notes.value,
  notes.at
FROM segments
JOIN notes ON notes.tree_id = :tree_id
  AND notes.branch = segments.branch
  AND notes.seq BETWEEN segments.first AND segments.last
  AND notes.owner IS NOT DISTINCT FROM :owner COLLATE "C"
WHERE notes.key = :key COLLATE "C"
ORDER BY notes.seq,
  notes.key

-- history.message_notes.LIST_NOTES_OF_KEY
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes.key,
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes.key = :key COLLATE "C"
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes.key
LIMIT :limit

-- history.message_notes.LIST_NOTES_OF_KEY_AFTER
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes.key,
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes.key = :key COLLATE "C"
  AND notes.at >= :seen_at
  AND (
    notes.at,
    notes.session_id,
    notes.branch,
    notes.seq,
    notes.key
  ) > (
    :seen_at,
    :seen_session_id COLLATE "C",
    :seen_branch,
    :seen_seq,
    :seen_key COLLATE "C"
  )
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes.key
LIMIT :limit

-- history.message_notes.LIST_OWNED_NOTES
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes.key,
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes.owner IS NOT DISTINCT FROM :owner COLLATE "C"
  AND sessions.owner = :owner COLLATE "C"
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes.key
LIMIT :limit

-- history.message_notes.LIST_OWNED_NOTES_OF_KEY
SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes.key,
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes.key = :key COLLATE "C"
  AND notes.owner IS NOT DISTINCT FROM :owner COLLATE "C"
  AND sessions.owner = :owner COLLATE "C"
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes.key
LIMIT :limit

-- history.price_rows.DELETE_OWNED_PRICES
DELETE FROM prices
WHERE prices.owner = :owner COLLATE "C"

-- history.price_rows.DELETE_PRICE
DELETE FROM prices
WHERE prices.owner = :old_owner COLLATE "C"
  AND prices.model = :old_model COLLATE "C"
  AND prices.valid_from = :old_valid_from

-- history.price_rows.INSERT_PRICE
INSERT INTO prices (owner, model, valid_from, input, cached, written, output)
VALUES (
  :owner COLLATE "C",
  :model COLLATE "C",
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
WHERE prices.owner IN (:owner_1 COLLATE "C", :owner COLLATE "C")
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
WHERE prices.owner IN (:owner_1 COLLATE "C", :owner COLLATE "C")
  AND prices.model IN (:model COLLATE "C", :base_model COLLATE "C")

-- history.raw_messages.FIND_OTHER_FORMAT
SELECT messages.seq
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
  AND messages.wire_format IS DISTINCT FROM :wire_format
LIMIT 1

-- history.redaction.BLANK_CALL
SELECT redact_tool_calls(
  :tree,
  :of,
  :position,
  :number,
  :new_call_id,
  :new_name,
  :new_arguments_form,
  :new_arguments,
  :new_extra
) AS redact_tool_calls_1

-- history.redaction.BLANK_MESSAGE
SELECT redact_messages(
  :tree,
  :of,
  :position,
  :new_role,
  :new_name,
  :new_status,
  :new_tool_call_id,
  :new_created_at,
  :new_message_id,
  :new_extra,
  :new_content_form,
  :new_content,
  :new_digest
) AS redact_messages_1

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
  :session_id COLLATE "C",
  :reason,
  :redacted_by,
  :redacted_at,
  :summaries,
  :newest_copy,
  :sealed
)

-- history.redaction.SET_REDACTED_TITLE
UPDATE sessions
SET title=:title,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"

-- history.request_rows.DELETE_LEFT_REQUESTS
DELETE FROM requests
WHERE requests.tree_id = :tree_id
  AND requests.session_id = :session_id COLLATE "C"
  AND (
    requests.branch IN (
      SELECT CAST("left".value AS BIGINT) AS value
      FROM json_array_elements_text(CAST(:left AS json)) AS "left"
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
  AND requests.session_id = :session_id COLLATE "C"

-- history.request_rows.DELETE_REQUEST_TEXT
DELETE FROM request_texts
WHERE request_texts.tree_id = :tree_id
  AND request_texts.text_digest = :text_digest COLLATE "C"

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
  :session_id COLLATE "C",
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
VALUES (:tree_id, :text_digest COLLATE "C", :content, :sealed)

-- history.request_rows.KNOWN_TEXTS
SELECT request_texts.text_digest
FROM request_texts
WHERE request_texts.tree_id = :tree_id
  AND request_texts.text_digest IN (
    SELECT named.value
    FROM json_each_text(CAST(:texts AS json)) AS named
  )

-- history.request_rows.LAST_NUMBER
SELECT max(requests.request) AS max_1
FROM requests
WHERE requests.tree_id = :tree_id
  AND requests.session_id = :session_id COLLATE "C"

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
  AND requests.session_id = :session_id COLLATE "C"
ORDER BY requests.request DESC
LIMIT 1

-- history.request_rows.LINK_USAGE
UPDATE requests
SET usage_branch=:branch,
  usage_seq=:seq,
  usage_number=:usage
WHERE requests.tree_id = :tree
  AND requests.session_id = :session COLLATE "C"
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
  AND requests.session_id = :session_id COLLATE "C"
  AND requests.request BETWEEN :start AND :stop
  AND requests.seq BETWEEN :first_seq AND :last_seq
ORDER BY requests.request DESC
LIMIT :limit

-- history.request_rows.REQUEST_TEXTS
SELECT request_texts.text_digest,
  request_texts.content
FROM request_texts
WHERE request_texts.tree_id = :tree_id
  AND request_texts.text_digest IN (
    SELECT named.value
    FROM json_each_text(CAST(:texts AS json)) AS named
  )

-- history.retention.ALL_BYTES.1
SELECT coalesce(
  sum(
    0 + coalesce(octet_length(messages.content), 0) + coalesce(octet_length(messages.extra), 0)
  ),
  0
) AS coalesce_1
FROM messages

-- history.retention.ALL_BYTES.2
SELECT coalesce(
  sum(
    0 + coalesce(octet_length(tool_calls.arguments), 0) + coalesce(octet_length(tool_calls.extra), 0)
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
  ) AS BIGINT
) AS coalesce_1
FROM message_attachments

-- history.retention.IS_COMPACTED
SELECT compaction_records.session_id
FROM compaction_records
WHERE compaction_records.outcome = 'running'
  AND compaction_records.lease_until > :now
  AND compaction_records.tree_id = :tree_id
  AND compaction_records.session_id = :session_id COLLATE "C"

-- history.retention.RUN_BYTES.1
SELECT coalesce(
  sum(
    0 + coalesce(octet_length(messages.content), 0) + coalesce(octet_length(messages.extra), 0)
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
    0 + coalesce(octet_length(tool_calls.arguments), 0) + coalesce(octet_length(tool_calls.extra), 0)
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
  ) AS BIGINT
) AS coalesce_1
FROM message_attachments
WHERE message_attachments.tree_id = :tree_id
  AND message_attachments.branch = :branch
  AND message_attachments.seq > :kept
  AND message_attachments.seq <= :end

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
  JOIN LATERAL (
    SELECT *
    FROM sessions AS fork
    WHERE fork.tree_id = :tree_id
      AND fork.id = sources.session_id OFFSET 0
  ) AS fork ON true
  JOIN LATERAL (
    SELECT *
    FROM head_moves AS forks
    WHERE forks.tree_id = :tree_id
      AND forks.session_id = sources.session_id
      AND forks.move = 1 OFFSET 0
  ) AS forks ON true
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
  AND branches.session_id = :session_id COLLATE "C"
  AND branches.branch >= coalesce(
    (
      SELECT max(first_moves.to_branch) AS max_2
      FROM (
        SELECT head_moves.kind AS kind,
          head_moves.to_branch AS to_branch
        FROM head_moves
        WHERE head_moves.tree_id = :tree_id
          AND head_moves.session_id = :session_id COLLATE "C"
        ORDER BY head_moves.move
        LIMIT 2
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
  JOIN LATERAL (
    SELECT *
    FROM sessions AS fork
    WHERE fork.tree_id = :tree_id
      AND fork.id = sources.session_id OFFSET 0
  ) AS fork ON true
  JOIN LATERAL (
    SELECT *
    FROM head_moves AS forks
    WHERE forks.tree_id = :tree_id
      AND forks.session_id = sources.session_id
      AND forks.move = 1 OFFSET 0
  ) AS forks ON true
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

-- history.sessions.DELETE_KEYS
DELETE FROM session_keys
WHERE session_keys.tree_id = :tree_id
  AND session_keys.session_id = :session_id COLLATE "C"

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
  :session_id COLLATE "C",
  :created_at,
  :sealed
)

-- history.sessions.INSERT_KEYS
INSERT INTO session_keys (tree_id, session_id, key, value)
VALUES (
  :tree_id,
  :session_id COLLATE "C",
  :key COLLATE "C",
  :value COLLATE "C"
)

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
  :id COLLATE "C",
  :head_branch,
  :head,
  :last_rewind,
  :created_at,
  :updated_at,
  :forked_from COLLATE "C",
  :forked_at,
  :fold_case,
  :title,
  :project_root,
  :metadata,
  :revision,
  :owner COLLATE "C",
  :archived,
  :updated_second,
  :source COLLATE "C",
  :file,
  :sealed
)

-- history.sessions.NEWEST_RECORD
SELECT compaction_records.compaction
FROM compaction_records
WHERE compaction_records.tree_id = :tree_id
ORDER BY compaction_records.compaction DESC
LIMIT 1

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
  SELECT CAST(trees.value AS BIGINT) AS value
  FROM json_array_elements_text(CAST(:trees AS json)) AS trees
)
  AND sessions.id IN (
    SELECT ids.value
    FROM json_array_elements_text(CAST(:ids AS json)) AS ids
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
  AND sessions.id = :session_id COLLATE "C"

-- history.sessions.SESSION_OWNER
SELECT sessions.owner
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id COLLATE "C"

-- history.sessions.SET_ARCHIVED
UPDATE sessions
SET revision=:revision,
  archived=:archived
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"
RETURNING sessions.id AS id,
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

-- history.sessions.SET_METADATA
UPDATE sessions
SET metadata=:metadata,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"
RETURNING sessions.id AS id,
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

-- history.sessions.SET_ORIGIN
UPDATE sessions
SET revision=:revision,
  source=:source COLLATE "C",
  file=:file
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"
RETURNING sessions.id AS id,
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

-- history.sessions.SET_TITLE
UPDATE sessions
SET updated_at=:now,
  title=:title,
  revision=:revision,
  updated_second=(:now / 1000)
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id COLLATE "C"
RETURNING sessions.id AS id,
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

-- history.token_counts.COUNTED_TOTAL
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
SELECT count(*) AS count_1,
  CAST(coalesce(sum(token_counts.tokens), 0) AS BIGINT) AS coalesce_1
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
    AND sessions.owner IS NOT DISTINCT FROM :owner COLLATE "C"
)

-- history.token_counts.OTHER_OWNERS_RUNS
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
      AND sessions.owner IS NOT DISTINCT FROM :owner COLLATE "C"
  )
)
ORDER BY segments.first

-- history.token_counts.UNCOUNTED_MESSAGES
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
        AND sessions.owner IS NOT DISTINCT FROM :owner COLLATE "C"
    )
  )
ORDER BY messages.seq
LIMIT :limit

-- history.tool_use.ANSWERED_CALLS
SELECT COALESCE(CAST(json_agg(seq) AS text), '[]'),
  COALESCE(CAST(json_agg(position) AS text), '[]'),
  COALESCE(CAST(json_agg(name) AS text), '[]'),
  COALESCE(CAST(json_agg(tool_name) AS text), '[]'),
  COALESCE(CAST(json_agg(arguments) AS text), '[]'),
  COALESCE(CAST(json_agg(failed) AS text), '[]'),
  COALESCE(CAST(json_agg(at) AS text), '[]'),
  COALESCE(CAST(json_agg(result_seq) AS text), '[]')
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
  JOIN LATERAL (
    SELECT *
    FROM tool_calls c
    WHERE c.tree_id = :tree_id
      AND c.branch = :call_branch
      AND c.seq = r.call_seq + 0
      AND c.position = r.call_position OFFSET 0
  ) AS c ON true
  WHERE r.tree_id = :tree_id
    AND r.branch = :branch
    AND r.seq BETWEEN :first AND :last
    AND r.call_seq BETWEEN :call_first AND :call_last
) AS found

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
JOIN LATERAL (
  SELECT *
  FROM tool_results r
  WHERE r.tree_id = :tree_id
    AND r.branch = :branch
    AND r.seq = p.seq OFFSET 0
) AS r ON true
LEFT JOIN tool_kinds k ON k.name = r.tool_name
WHERE p.tree_id = :tree_id
  AND p.branch = :branch
  AND p.seq BETWEEN :first AND :last
  AND (:every = 1 OR p.path = :path)

-- history.tool_use.MOMENTS
SELECT COALESCE(
  CAST(json_agg(moments.at ORDER BY moments.seq) AS text),
  '[]'
) AS anon_1
FROM (
  SELECT m.seq AS seq,
    coalesce(m.created_at, m.stored_at) AS at
  FROM messages AS m
  WHERE m.tree_id = :tree_id
    AND m.branch = :branch
    AND m.seq BETWEEN :first AND :last
  ORDER BY m.seq
) AS moments

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
  :base_model COLLATE "C",
  :sealed
)

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
  JOIN LATERAL (
    SELECT *
    FROM sessions AS fork
    WHERE fork.tree_id = :tree_id
      AND fork.id = sources.session_id OFFSET 0
  ) AS fork ON true
  JOIN LATERAL (
    SELECT *
    FROM head_moves AS forks
    WHERE forks.tree_id = :tree_id
      AND forks.session_id = sources.session_id
      AND forks.move = 1 OFFSET 0
  ) AS forks ON true
  WHERE forks.kind = 'fork'
    AND forks.source_move IS NOT NULL
    AND forks.to_branch < sources.before
),
line(branch, session_id, last) AS (
  SELECT branches.branch,
    branches.session_id,
    :last
  FROM branches
  WHERE branches.tree_id = :tree_id
    AND branches.branch = :branch
  UNION ALL
  SELECT above.ancestor,
    held.session_id,
    LEAST(above.last, :last)
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
    FROM branches AS held
    WHERE held.tree_id = :tree_id
      AND held.branch = above.ancestor OFFSET 0
  ) AS held ON true
)
SELECT usages.seq,
  usages.input,
  usages.output,
  usages.at,
  usages.cached
FROM line
JOIN sources ON sources.session_id = line.session_id
  AND line.branch < sources.before
JOIN LATERAL (
  SELECT newest.*
  FROM usages AS newest
  WHERE newest.tree_id = :tree_id
    AND newest.branch = line.branch
    AND newest.seq <= line.last
    AND newest.usage / 4294967296 < sources.before
    AND newest.input > 0
  ORDER BY newest.seq DESC,
    newest.usage DESC
  LIMIT 1
) AS usages ON true
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
WHERE sessions.owner = :owner COLLATE "C"
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage % 4294967296
LIMIT :limit

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
  AND sessions.id = :session_id COLLATE "C"
  AND usages.seq BETWEEN :first_seq AND :last_seq
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage % 4294967296
LIMIT :limit

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
  AND sessions.id = :session_id COLLATE "C"
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage % 4294967296
LIMIT :limit

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
    :seen_session_id COLLATE "C",
    :seen_branch,
    :seen_seq,
    :seen_number
  )
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage % 4294967296
LIMIT :limit

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
    AND sessions.id = :session_id COLLATE "C"
) AS numbered
WHERE numbered.request BETWEEN :start AND :stop
  AND numbered.seq BETWEEN :first_seq AND :last_seq
ORDER BY numbered.request DESC
LIMIT :limit

-- history.usages.NEWEST_BRANCH
SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
ORDER BY branches.branch DESC
LIMIT 1

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
  CAST(sum(usages.input) AS BIGINT) AS input,
  CAST(sum(usages.output) AS BIGINT) AS output,
  CAST(sum(usages.cached) AS BIGINT) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS BIGINT) AS written,
  sum(usages.cost) AS paid
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE sessions.owner = :owner COLLATE "C"
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
  CAST(sum(usages.input) AS BIGINT) AS input,
  CAST(sum(usages.output) AS BIGINT) AS output,
  CAST(sum(usages.cached) AS BIGINT) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS BIGINT) AS written,
  sum(usages.cost) AS paid
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE sessions.tree_id = :tree_id
  AND sessions.id = :session_id COLLATE "C"
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
  CAST(sum(usages.input) AS BIGINT) AS input,
  CAST(sum(usages.output) AS BIGINT) AS output,
  CAST(sum(usages.cached) AS BIGINT) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS BIGINT) AS written,
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
  AND sessions.id = :session_id COLLATE "C"

