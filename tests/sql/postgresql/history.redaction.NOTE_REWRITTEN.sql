UPDATE redactions
SET purged_at=%(now)s::BIGINT
WHERE redactions.purged_at IS NULL
