SELECT coalesce(max(usages.usage), 0) + 1 AS anon_1
FROM usages
WHERE usages.tree_id = %(tree_id)s::BIGINT
  AND usages.branch = %(branch)s::BIGINT
  AND usages.seq = %(seq)s::BIGINT
