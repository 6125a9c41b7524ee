SELECT compaction_records.compaction
FROM compaction_records
WHERE compaction_records.tree_id = %(tree_id)s::BIGINT
LIMIT 1
