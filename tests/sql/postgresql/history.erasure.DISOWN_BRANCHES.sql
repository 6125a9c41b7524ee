UPDATE branches
SET session_id=%(session_id)s::VARCHAR COLLATE "C"
WHERE branches.tree_id = %(tree)s::BIGINT
  AND branches.session_id = %(owner)s::VARCHAR COLLATE "C"
