UPDATE erasures
SET finished_at=%(now)s::BIGINT,
  newest_copy=%(newest)s::BIGINT
WHERE erasures.tree_id = %(tree)s::BIGINT
  AND erasures.erasure = %(number)s::BIGINT
  AND erasures.branch = %(of)s::BIGINT
