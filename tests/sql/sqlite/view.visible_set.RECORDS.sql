SELECT compaction_records.compaction AS id,
  compaction_records.kind,
  compaction_records.outcome,
  compaction_records.reason,
  compaction_records.policy,
  compaction_records.session_id,
  compaction_records.head,
  compaction_records.hidden_first,
  compaction_records.hidden_last,
  compaction_records.first_kept,
  compaction_records.pinned,
  compaction_records.cleared,
  compaction_records.undoes,
  compaction_records.messages_before,
  compaction_records.messages_after,
  compaction_records.tokens_before,
  compaction_records.tokens_after,
  compaction_records.created_at,
  compaction_records.error,
  compaction_records.error_kind,
  compaction_records.summary AS summary_number,
  summaries.first AS stands_from
FROM compaction_records
LEFT OUTER JOIN summaries ON summaries.tree_id = :tree_id
  AND summaries.summary = compaction_records.summary
WHERE compaction_records.tree_id = :tree_id
  AND compaction_records.compaction IN (
    SELECT CAST(numbers.value AS INTEGER) AS value
    FROM json_each(:numbers) AS numbers
  )
