DELETE FROM redactions
WHERE redactions.tree_id = %(tree_id)s::BIGINT
  AND redactions.branch = %(branch)s::BIGINT
  AND redactions.seq > %(kept)s::BIGINT
