SELECT sessions.tree_id,
  sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.head
FROM sessions
WHERE sessions.tree_id IN (
  SELECT CAST(trees.value AS BIGINT) AS value
  FROM json_array_elements_text(CAST(%(trees)s AS json)) AS trees
)
ORDER BY sessions.tree_id,
  sessions.id
