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
