WITH RECURSIVE line(
  branch,
  parent_branch,
  parent_position,
  records_seen,
  session_id,
  last,
  newest
) AS (
  SELECT branches.branch AS branch,
    branches.parent_branch AS parent_branch,
    branches.parent_position AS parent_position,
    branches.records_seen AS records_seen,
    branches.session_id AS session_id,
    %(last)s::BIGINT AS last,
    %(newest)s::BIGINT AS newest
  FROM branches
  WHERE branches.tree_id = %(tree_id)s::BIGINT
    AND branches.branch = %(branch)s::BIGINT
  UNION ALL
  SELECT parents.branch AS branch,
    parents.parent_branch AS parent_branch,
    parents.parent_position AS parent_position,
    parents.records_seen AS records_seen,
    parents.session_id AS session_id,
    CASE
      WHEN (line.parent_position < line.last) THEN line.parent_position
      ELSE line.last
    END AS anon_1,
    line.records_seen AS records_seen_1
  FROM branches AS parents
  JOIN line ON parents.branch = line.parent_branch
  WHERE parents.tree_id = %(tree_id)s::BIGINT
)
SELECT usages.seq,
  usages.input,
  usages.output,
  usages.at
FROM line
JOIN usages ON usages.tree_id = %(tree_id)s::BIGINT
  AND usages.branch = line.branch
  AND usages.seq <= line.last
  AND line.session_id = %(session_id)s::VARCHAR COLLATE "C"
ORDER BY usages.seq DESC,
  usages.branch DESC,
  usages.usage DESC
LIMIT 1
