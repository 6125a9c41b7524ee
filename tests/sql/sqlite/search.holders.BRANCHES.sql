SELECT branches.branch,
  branches.parent_branch,
  branches.parent_position,
  branches.session_id
FROM branches
WHERE branches.tree_id = :tree_id
