SELECT usages.seq,
  max(usages.usage %% 4294967296) AS max_1
FROM usages
WHERE usages.tree_id = %(tree_id)s::BIGINT
  AND usages.branch = %(branch)s::BIGINT
  AND usages.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
GROUP BY usages.seq
