SELECT sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.created_at,
  sessions.title
FROM sessions
WHERE sessions.archived = 0
  AND sessions.owner = %(owner)s::VARCHAR COLLATE "C"
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT 5000
