DELETE FROM compaction_records
WHERE compaction_records.tree_id = :tree_id
  AND compaction_records.branch = :branch
  AND compaction_records.head > :kept
