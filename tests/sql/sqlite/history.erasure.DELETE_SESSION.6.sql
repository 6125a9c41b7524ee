DELETE FROM session_ids
WHERE session_ids.tree_id = :tree_id
  AND session_ids.id = :session_id
