SELECT copies.copy,
  copies.made_at,
  copies.size,
  copies.modified,
  copies.kind,
  copies.path
FROM copies
ORDER BY copies.copy
