DELETE FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
  AND branches.branch = %(branch)s::BIGINT
