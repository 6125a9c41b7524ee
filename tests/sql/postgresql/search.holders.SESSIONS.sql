SELECT sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.head
FROM sessions
WHERE sessions.tree_id = %(tree_id)s::BIGINT
ORDER BY sessions.id
