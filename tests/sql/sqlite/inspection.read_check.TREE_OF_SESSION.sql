SELECT session_ids.tree_id
FROM session_ids
WHERE session_ids.id = :session_id
