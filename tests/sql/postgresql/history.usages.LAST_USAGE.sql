WITH RECURSIVE sources(generation, session_id, moves, records, before) AS (
  SELECT 0,
    sessions.id,
    COALESCE(
      (
        SELECT MAX(head_moves.move)
        FROM head_moves
        WHERE head_moves.tree_id = %(tree_id)s::BIGINT
          AND head_moves.session_id = %(session_id)s::VARCHAR
      ),
      0
    ),
    %(never)s::BIGINT,
    %(never)s::BIGINT
  FROM sessions
  WHERE sessions.tree_id = %(tree_id)s::BIGINT
    AND sessions.id = %(session_id)s::VARCHAR
  UNION ALL
  SELECT sources.generation + 1,
    sessions.forked_from,
    forks.source_move,
    forks.source_record,
    forks.to_branch
  FROM sources
  JOIN sessions ON sessions.tree_id = %(tree_id)s::BIGINT
    AND sessions.id = sources.session_id
  JOIN head_moves AS forks ON forks.tree_id = %(tree_id)s::BIGINT
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
    %(last)s::BIGINT
  FROM branches
  WHERE branches.tree_id = %(tree_id)s::BIGINT
    AND branches.branch = %(branch)s::BIGINT
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
  JOIN branches AS parents ON parents.tree_id = %(tree_id)s::BIGINT
    AND parents.branch = line.parent_branch
)
SELECT usages.seq,
  usages.input,
  usages.output,
  usages.at
FROM line
JOIN sources ON sources.session_id = line.session_id
  AND line.branch < sources.before
JOIN usages ON usages.tree_id = %(tree_id)s::BIGINT
  AND usages.branch = line.branch
  AND usages.seq <= line.last
  AND usages.usage / 4294967296 < sources.before
ORDER BY usages.seq DESC,
  usages.branch DESC,
  usages.usage DESC
LIMIT 1
