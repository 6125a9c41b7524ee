DELETE FROM usages
WHERE usages.tree_id = %(tree_id)s::BIGINT
  AND usages.branch = %(branch)s::BIGINT
  AND usages.seq > %(kept)s::BIGINT
