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
WHERE redactions.tree_id = %(tree_id)s::BIGINT
  AND redactions.branch = %(branch)s::BIGINT
  AND redactions.seq = %(seq)s::BIGINT
