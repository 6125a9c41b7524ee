SELECT compaction_records.compaction,
  compaction_records.lease_until
FROM compaction_records
WHERE compaction_records.tree_id = :tree_id
  AND compaction_records.session_id = :session_id
  AND compaction_records.outcome = 'running'
