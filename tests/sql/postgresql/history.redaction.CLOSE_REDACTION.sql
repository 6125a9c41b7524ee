UPDATE redactions
SET finished_at=%(now)s::BIGINT
WHERE redactions.tree_id = %(tree)s::BIGINT
  AND redactions.branch = %(of)s::BIGINT
  AND redactions.seq = %(position)s::BIGINT
