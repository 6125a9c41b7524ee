SELECT compaction_records.compaction
FROM compaction_records
WHERE compaction_records.tree_id = :tree_id
LIMIT 1 OFFSET :param_1
