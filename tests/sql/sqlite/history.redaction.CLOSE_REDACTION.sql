UPDATE redactions
SET finished_at=:now
WHERE redactions.tree_id = :tree
  AND redactions.branch = :of
  AND redactions.seq = :position
