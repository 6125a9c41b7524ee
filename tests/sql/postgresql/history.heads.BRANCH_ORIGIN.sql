SELECT branches.parent_branch,
  branches.parent_position,
  branches.records_seen,
  EXISTS (
    SELECT *
    FROM compaction_records
    WHERE compaction_records.tree_id = %(tree_id)s::BIGINT
      AND compaction_records.branch = %(branch)s::BIGINT
      AND compaction_records.head = %(position)s::BIGINT
      AND compaction_records.compaction <= %(newest)s::BIGINT
      AND compaction_records.outcome != 'running'
  ) AS anon_1
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
  AND branches.branch = %(branch)s::BIGINT
