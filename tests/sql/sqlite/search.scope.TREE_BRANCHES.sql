SELECT branches.tree_id,
  branches.branch,
  branches.parent_branch,
  branches.parent_position,
  branches.session_id,
  branches.records_seen
FROM branches
WHERE branches.tree_id IN (
  SELECT CAST(trees.value AS INTEGER) AS value
  FROM json_each(:trees) AS trees
)
