DELETE FROM branches
WHERE branches.tree_id = :tree_id
  AND branches.branch = :branch
