UPDATE erasures
SET purged_at=%(now)s::BIGINT
WHERE erasures.purged_at IS NULL
  AND erasures.finished_at IS NOT NULL
