SELECT branches.branch,
  branches.parent_branch,
  branches.parent_position
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
ORDER BY branches.branch
