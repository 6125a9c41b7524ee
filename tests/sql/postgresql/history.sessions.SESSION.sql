SELECT sessions.id,
  sessions.title,
  sessions.head,
  sessions.project_root,
  sessions.metadata,
  sessions.created_at,
  sessions.updated_at,
  sessions.forked_from,
  sessions.forked_at,
  sessions.head_branch AS branch,
  sessions.revision
FROM session_ids
JOIN sessions ON sessions.tree_id = session_ids.tree_id
  AND sessions.id = session_ids.id
WHERE session_ids.id = %(session_id)s::VARCHAR COLLATE "C"
