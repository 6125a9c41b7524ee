SELECT copies.copy,
  copies.made_at,
  copies.size,
  copies.modified,
  copies.kind,
  copies.path
FROM copies
WHERE copies.copy <= (
  SELECT max(erasures.newest_copy) AS max_1
  FROM erasures
)
ORDER BY copies.copy
