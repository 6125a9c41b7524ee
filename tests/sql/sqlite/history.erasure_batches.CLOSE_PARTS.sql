UPDATE erasures
SET finished_at=:now,
  newest_copy=CASE
    WHEN (erasures.newest_copy > :newest) THEN erasures.newest_copy
    ELSE :newest
  END
WHERE erasures.tree_id = :tree
  AND erasures.branch = :of
  AND erasures.erasure <= :through
  AND erasures.finished_at IS NULL
