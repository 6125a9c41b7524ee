DELETE FROM session_ids
WHERE session_ids.tree_id = %(tree_id)s::BIGINT
  AND session_ids.id = %(session_id)s::VARCHAR COLLATE "C"
