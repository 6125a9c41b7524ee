SELECT redactions.tree_id,
  redactions.branch,
  redactions.seq,
  redactions.session_id,
  redactions.reason,
  redactions.redacted_by,
  redactions.redacted_at,
  redactions.summaries,
  redactions.newest_copy,
  redactions.purged_at
FROM redactions
ORDER BY redactions.redacted_at,
  redactions.branch,
  redactions.seq
