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
    sessions.forked_from,
    forks.source_move,
    forks.source_record,
    forks.to_branch
  FROM sources
  JOIN sessions ON sessions.tree_id = :tree_id
    AND sessions.id = sources.session_id
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
