SELECT sessions.tree_id,
  sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.head
FROM sessions
WHERE sessions.tree_id IN (
  SELECT CAST(trees.value AS INTEGER) AS value
  FROM json_each(:trees) AS trees
)
ORDER BY sessions.tree_id,
  sessions.id
