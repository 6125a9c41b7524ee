SELECT sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.created_at,
  sessions.title
FROM sessions
WHERE sessions.archived = 0
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT 5000
