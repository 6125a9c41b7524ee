UPDATE branches
SET session_id=:session_id
WHERE branches.tree_id = :tree
  AND branches.session_id = :owner
