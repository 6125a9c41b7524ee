UPDATE branches
SET records_seen=%(newest)s::BIGINT
WHERE branches.tree_id = %(tree)s::BIGINT
  AND branches.records_seen > %(newest)s::BIGINT
