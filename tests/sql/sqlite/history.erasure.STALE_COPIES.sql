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
  OR copies.copy <= (
    SELECT max(redactions.newest_copy) AS max_2
    FROM redactions
  )
ORDER BY copies.copy
