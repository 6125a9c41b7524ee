DELETE FROM usages
WHERE usages.tree_id = :tree_id
  AND usages.branch = :branch
  AND usages.seq > :kept
