WITH RECURSIVE line(
  branch,
  parent_branch,
  parent_position,
  records_seen,
  last,
  newest
) AS (
  SELECT branches.branch AS branch,
    branches.parent_branch AS parent_branch,
    branches.parent_position AS parent_position,
    branches.records_seen AS records_seen,
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
    CASE
      WHEN (line.parent_position < line.last) THEN line.parent_position
      ELSE line.last
    END AS anon_1,
    line.records_seen AS records_seen_1
  FROM branches AS parents
  JOIN line ON parents.branch = line.parent_branch
  WHERE parents.tree_id = %(tree_id)s::BIGINT
)
SELECT compaction_records.compaction,
  compaction_records.outcome
FROM line
JOIN compaction_records ON compaction_records.tree_id = %(tree_id)s::BIGINT
  AND compaction_records.branch = line.branch
  AND compaction_records.head <= line.last
  AND compaction_records.compaction <= line.newest
ORDER BY compaction_records.compaction
