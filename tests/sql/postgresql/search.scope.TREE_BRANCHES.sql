SELECT branches.tree_id,
  branches.branch,
  branches.parent_branch,
  branches.parent_position,
  branches.session_id,
  branches.records_seen
FROM branches
WHERE branches.tree_id IN (
  SELECT CAST(trees.value AS BIGINT) AS value
  FROM json_array_elements_text(CAST(%(trees)s AS json)) AS trees
)
