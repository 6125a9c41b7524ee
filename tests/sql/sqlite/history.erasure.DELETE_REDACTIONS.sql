DELETE FROM redactions
WHERE redactions.tree_id = :tree_id
  AND redactions.branch = :branch
  AND redactions.seq > :kept
