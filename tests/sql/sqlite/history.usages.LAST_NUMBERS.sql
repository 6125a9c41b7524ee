SELECT usages.seq,
  max(usages.usage % 4294967296) AS max_1
FROM usages
WHERE usages.tree_id = :tree_id
  AND usages.branch = :branch
  AND usages.seq BETWEEN :first AND :last
GROUP BY usages.seq
