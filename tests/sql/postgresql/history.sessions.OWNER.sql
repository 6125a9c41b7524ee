SELECT sessions.owner
FROM session_ids
JOIN sessions ON sessions.tree_id = session_ids.tree_id
  AND sessions.id = session_ids.id
WHERE session_ids.id = %(session_id)s::VARCHAR COLLATE "C"
