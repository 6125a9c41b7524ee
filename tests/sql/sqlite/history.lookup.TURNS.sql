WITH RECURSIVE walk(branch, parent_branch, first, last) AS (
  SELECT branches.branch AS branch,
    branches.parent_branch AS parent_branch,
    branches.parent_position + 1 AS first,
    :last AS last
  FROM branches
  WHERE branches.tree_id = :tree_id
    AND branches.branch = :branch
  UNION ALL
  SELECT parents.branch AS branch,
    parents.parent_branch AS parent_branch,
    parents.parent_position + 1 AS anon_1,
    CASE
      WHEN (walk.first <= :last) THEN walk.first - 1
      ELSE :last
    END AS anon_2
  FROM branches AS parents
  JOIN walk ON parents.branch = walk.parent_branch
  WHERE parents.tree_id = :tree_id
    AND walk.first > :start
),
segments AS (
  SELECT walk.branch AS branch,
    CASE
      WHEN (walk.first < :start) THEN :start
      ELSE walk.first
    END AS first,
    walk.last AS last
  FROM walk
  WHERE CASE
    WHEN (walk.first < :start) THEN :start
    ELSE walk.first
  END <= walk.last
),
turns AS (
  SELECT message_facts.turn AS turn,
    min(message_facts.seq) AS first,
    max(message_facts.seq) AS last,
    count(*) AS messages
  FROM message_facts
  JOIN segments ON message_facts.tree_id = :tree_id
    AND message_facts.branch = segments.branch
    AND message_facts.seq BETWEEN segments.first AND segments.last
  WHERE message_facts.turn > 0
  GROUP BY message_facts.turn
)
SELECT turns.turn,
  turns.first,
  turns.last,
  turns.messages,
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
FROM turns
JOIN segments ON turns.first BETWEEN segments.first AND segments.last
JOIN messages ON messages.tree_id = :tree_id
  AND messages.branch = segments.branch
  AND messages.seq = turns.first
  AND messages.seq BETWEEN segments.first AND segments.last
ORDER BY turns.first
