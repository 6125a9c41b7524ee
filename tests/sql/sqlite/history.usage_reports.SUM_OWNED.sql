SELECT usages.model AS "key",
  usages.model,
  count(*) AS requests,
  CAST(sum(usages.input) AS INTEGER) AS input,
  CAST(sum(usages.output) AS INTEGER) AS output,
  CAST(sum(usages.cached) AS INTEGER) AS cached,
  CAST(sum(coalesce(usages.written, 0)) AS INTEGER) AS written,
  sum(usages.cost) AS paid
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE sessions.owner = :owner
GROUP BY usages.model,
  usages.model,
  usages.cost IS NULL
ORDER BY "key"
