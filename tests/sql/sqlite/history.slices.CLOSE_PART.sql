UPDATE erasures
SET finished_at=:now,
  newest_copy=:newest
WHERE erasures.tree_id = :tree
  AND erasures.erasure = :number
  AND erasures.branch = :of
