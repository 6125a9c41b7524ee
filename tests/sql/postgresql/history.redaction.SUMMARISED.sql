SELECT summaries.branch,
  summaries.last,
  compaction_records.compaction
FROM summaries
JOIN compaction_records ON compaction_records.tree_id = summaries.tree_id
  AND compaction_records.summary = summaries.summary
WHERE summaries.tree_id = %(tree_id)s::BIGINT
  AND summaries.first <= %(seq)s::BIGINT
  AND summaries.last >= %(seq)s::BIGINT
