UPDATE erasures
SET finished_at=%(now)s::BIGINT,
  newest_copy=CASE
    WHEN (erasures.newest_copy > %(newest)s::BIGINT) THEN erasures.newest_copy
    ELSE %(newest)s::BIGINT
  END
WHERE erasures.tree_id = %(tree)s::BIGINT
  AND erasures.branch = %(of)s::BIGINT
  AND erasures.erasure <= %(through)s::BIGINT
  AND erasures.finished_at IS NULL
