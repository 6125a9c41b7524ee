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
