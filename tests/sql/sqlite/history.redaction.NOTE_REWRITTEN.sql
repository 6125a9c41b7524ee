UPDATE redactions
SET purged_at=:now
WHERE redactions.purged_at IS NULL
