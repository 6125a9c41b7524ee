DELETE FROM compaction_records
WHERE compaction_records.tree_id = %(tree_id)s::BIGINT
  AND compaction_records.branch = %(branch)s::BIGINT
  AND compaction_records.head > %(kept)s::BIGINT
