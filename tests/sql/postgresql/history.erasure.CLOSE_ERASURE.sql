UPDATE erasures
SET finished_at=%(now)s::BIGINT
WHERE erasures.tree_id = %(tree)s::BIGINT
  AND erasures.erasure = %(number)s::BIGINT
