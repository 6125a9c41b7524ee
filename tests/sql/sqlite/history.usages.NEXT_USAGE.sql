SELECT coalesce(max(usages.usage), 0) + 1 AS anon_1
FROM usages
WHERE usages.tree_id = :tree_id
  AND usages.branch = :branch
  AND usages.seq = :seq
