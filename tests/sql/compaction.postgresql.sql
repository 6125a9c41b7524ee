-- compaction.plan.ANSWER_PLACES
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
SELECT tool_results.call_seq,
  tool_results.call_position,
  tool_results.seq
FROM segments
JOIN tool_results ON tool_results.tree_id = :tree_id
  AND tool_results.branch = segments.branch
  AND tool_results.seq BETWEEN segments.first AND segments.last
WHERE tool_results.call_seq BETWEEN :start AND :until

-- compaction.plan.CALL_PLACES
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
SELECT tool_calls.seq,
  tool_calls.position
FROM segments
JOIN tool_calls ON tool_calls.tree_id = :tree_id
  AND tool_calls.branch = segments.branch
  AND tool_calls.seq BETWEEN segments.first AND segments.last
WHERE tool_calls.seq <= :until

-- compaction.plan.GROUP_STARTS
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
SELECT message_facts.seq
FROM segments
JOIN message_facts ON message_facts.tree_id = :tree_id
  AND message_facts.branch = segments.branch
  AND message_facts.seq BETWEEN segments.first AND segments.last
WHERE (message_facts.role NOT IN ('tool', 'system', 'developer'))
ORDER BY message_facts.seq DESC
LIMIT :count

-- compaction.plan.NEXT_USER
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
facts AS (
  SELECT message_facts.branch AS branch,
    message_facts.seq AS seq,
    message_facts.role AS role,
    message_facts.turn AS turn
  FROM segments
  JOIN message_facts ON message_facts.tree_id = :tree_id
    AND message_facts.branch = segments.branch
    AND message_facts.seq BETWEEN segments.first AND segments.last
  WHERE message_facts.seq >= :start
)
SELECT facts.seq
FROM facts
WHERE facts.role = 'user'
ORDER BY facts.seq
LIMIT 1

-- compaction.plan.PINNED_POSITIONS
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
facts AS (
  SELECT message_facts.branch AS branch,
    message_facts.seq AS seq,
    message_facts.role AS role,
    message_facts.turn AS turn
  FROM segments
  JOIN message_facts ON message_facts.tree_id = :tree_id
    AND message_facts.branch = segments.branch
    AND message_facts.seq BETWEEN segments.first AND segments.last
  WHERE message_facts.seq >= :start
)
SELECT facts.seq
FROM facts
WHERE facts.role IN ('system', 'developer')
ORDER BY facts.seq

-- compaction.plan.SPANNING_CALL
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
SELECT min(tool_results.call_seq) AS min_1,
  max(tool_results.seq) AS max_1
FROM segments
JOIN tool_results ON tool_results.tree_id = :tree_id
  AND tool_results.branch = segments.branch
  AND tool_results.seq BETWEEN segments.first AND segments.last
WHERE tool_results.call_seq >= :begin
  AND tool_results.call_seq < :start

-- compaction.plan.TURN_START
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
facts AS (
  SELECT message_facts.branch AS branch,
    message_facts.seq AS seq,
    message_facts.role AS role,
    message_facts.turn AS turn
  FROM segments
  JOIN message_facts ON message_facts.tree_id = :tree_id
    AND message_facts.branch = segments.branch
    AND message_facts.seq BETWEEN segments.first AND segments.last
  WHERE message_facts.seq >= :start
)
SELECT min(facts.seq) AS min_1
FROM facts
WHERE facts.turn >= :turn

-- compaction.range_facts.LISTED_RESULTS
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
SELECT tool_results.branch,
  tool_results.seq,
  tool_results.tool_name,
  coalesce(tool_kinds.kind, 'other') AS coalesce_1,
  tool_results.exit_code,
  tool_results.error_prefix,
  tool_results.status,
  tool_results.has_stderr,
  tool_results.looks_terminal,
  tool_calls.arguments_form,
  tool_calls.arguments,
  tool_results.call_seq,
  tool_results.call_position
FROM tool_results
LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
LEFT OUTER JOIN segments ON tool_results.call_seq BETWEEN segments.first AND segments.last
LEFT OUTER JOIN tool_calls ON tool_calls.tree_id = :tree_id
  AND tool_calls.branch = segments.branch
  AND tool_calls.seq = tool_results.call_seq
  AND tool_calls.position = tool_results.call_position
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq BETWEEN :first AND :last
  AND (
    tool_results.tool_name IN (
      SELECT tool_kinds.name
      FROM tool_kinds
      WHERE tool_kinds.kind = 'terminal'
        AND (
          tool_kinds.name NOT IN (
            SELECT pairs.key
            FROM json_each_text(CAST(:kinds AS json)) AS pairs
          )
        )
      UNION ALL
      SELECT pairs.key
      FROM json_each_text(CAST(:kinds AS json)) AS pairs
      WHERE pairs.value = 'terminal'
    )
    OR tool_results.looks_terminal = 1
    OR (
      (tool_results.error_prefix = 1)
      OR (tool_results.status = 'error')
    )
  )
ORDER BY tool_results.seq

-- compaction.record_rows.BRANCHED_SINCE
SELECT branches.branch
FROM branches
WHERE branches.tree_id = :tree_id
  AND branches.records_seen >= :number
UNION ALL
SELECT head_moves.to_branch
FROM head_moves
WHERE head_moves.tree_id = :tree_id
  AND head_moves.source_record >= :number
LIMIT 1

-- compaction.record_rows.FIRST_TIME
SELECT coalesce(messages.created_at, messages.stored_at) AS coalesce_1
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
  AND (messages.role NOT IN ('system', 'developer'))
ORDER BY messages.seq
LIMIT 1

-- compaction.record_rows.INSERT_RECORD
INSERT INTO compaction_records (
  tree_id,
  compaction,
  branch,
  head,
  reason,
  outcome,
  first_kept,
  hidden_first,
  hidden_last,
  summary,
  messages_before,
  messages_after,
  tokens_before,
  tokens_after,
  created_at,
  policy,
  error,
  session_id,
  kind,
  undoes,
  lease_until,
  pinned,
  cleared,
  error_kind,
  sealed
)
VALUES (
  :tree_id,
  :compaction,
  :branch,
  :head,
  :reason,
  :outcome,
  :first_kept,
  :hidden_first,
  :hidden_last,
  :summary,
  :messages_before,
  :messages_after,
  :tokens_before,
  :tokens_after,
  :created_at,
  :policy,
  :error,
  :session_id COLLATE "C",
  :kind,
  :undoes,
  :lease_until,
  :pinned,
  :cleared,
  :error_kind,
  :sealed
)

-- compaction.record_rows.NEWEST_SUMMARY
SELECT summaries.summary
FROM summaries
WHERE summaries.tree_id = :tree_id
ORDER BY summaries.summary DESC
LIMIT 1

-- compaction.record_rows.RUNNING_RECORD
SELECT compaction_records.compaction,
  compaction_records.lease_until
FROM compaction_records
WHERE compaction_records.tree_id = :tree_id
  AND compaction_records.session_id = :session_id COLLATE "C"
  AND compaction_records.outcome = 'running'

-- compaction.running_bills.BILL
SELECT running_bills.branch,
  running_bills.seq,
  running_bills.at,
  running_bills.requests,
  running_bills.sent,
  running_bills.sent_before,
  running_bills.raw_before,
  running_bills.pause,
  running_bills.longest_alive,
  running_bills.shortest_over,
  running_bills.was_cold,
  running_bills.own_bill,
  running_bills.raw_bill
FROM running_bills
WHERE running_bills.tree_id = :tree_id
  AND running_bills.session_id = :session_id COLLATE "C"
  AND running_bills.policy_name = :policy_name COLLATE "C"

-- compaction.running_bills.DELETE_BILL
DELETE FROM running_bills
WHERE running_bills.tree_id = :tree_id
  AND running_bills.session_id = :session_id COLLATE "C"
  AND running_bills.policy_name = :policy_name COLLATE "C"

-- compaction.running_bills.INSERT_BILL
INSERT INTO running_bills (
  tree_id,
  session_id,
  policy_name,
  branch,
  seq,
  at,
  requests,
  sent,
  sent_before,
  raw_before,
  pause,
  longest_alive,
  shortest_over,
  was_cold,
  own_bill,
  raw_bill
)
VALUES (
  :tree_id,
  :session_id COLLATE "C",
  :policy_name COLLATE "C",
  :branch,
  :seq,
  :at,
  :requests,
  :sent,
  :sent_before,
  :raw_before,
  :pause,
  :longest_alive,
  :shortest_over,
  :was_cold,
  :own_bill,
  :raw_bill
)

