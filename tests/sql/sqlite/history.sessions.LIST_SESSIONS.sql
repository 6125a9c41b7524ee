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
FROM sessions
ORDER BY sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1
