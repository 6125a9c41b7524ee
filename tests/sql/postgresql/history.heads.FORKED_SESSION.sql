SELECT sessions.tree_id,
  sessions.id,
  sessions.head_branch,
  sessions.head,
  sessions.last_rewind,
  sessions.created_at,
  sessions.updated_at,
  sessions.forked_from,
  sessions.forked_at,
  sessions.fold_case,
  sessions.title,
  sessions.project_root,
  sessions.metadata,
  sessions.revision,
  sessions.owner,
  sessions.archived,
  sessions.sealed
FROM sessions
WHERE sessions.tree_id = %(tree_id)s::BIGINT
  AND sessions.id = %(session_id)s::VARCHAR COLLATE "C"
