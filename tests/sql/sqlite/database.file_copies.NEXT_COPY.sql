SELECT coalesce(max(anon_2.number), :coalesce_1) + 1 AS anon_1
FROM (
  SELECT max(copies.copy) AS number
  FROM copies
  UNION ALL
  SELECT max(erasures.newest_copy) AS max_1
  FROM erasures
) AS anon_2
