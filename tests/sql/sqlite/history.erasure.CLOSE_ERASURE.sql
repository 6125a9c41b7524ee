UPDATE erasures
SET finished_at=:now
WHERE erasures.tree_id = :tree
  AND erasures.erasure = :number
