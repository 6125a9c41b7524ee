SELECT compaction_records.branch,
  compaction_records.head,
  compaction_records.outcome,
  compaction_records.first_kept,
  compaction_records.hidden_first,
  compaction_records.hidden_last,
  compaction_records.summary,
  compaction_records.messages_before,
  compaction_records.messages_after,
  compaction_records.tokens_before,
  compaction_records.tokens_after,
  compaction_records.error,
  compaction_records.error_kind,
  compaction_records.pinned,
  compaction_records.created_at
FROM compaction_records
WHERE compaction_records.tree_id = %(tree_id)s::BIGINT
  AND compaction_records.compaction = %(number)s::BIGINT
