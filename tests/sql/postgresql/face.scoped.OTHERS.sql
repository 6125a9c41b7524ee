SELECT sessions.id
FROM sessions
WHERE sessions.tree_id = %(tree_id)s::BIGINT
  AND (
    sessions.owner IS NULL
    OR sessions.owner != %(owner)s::VARCHAR COLLATE "C"
  )
LIMIT 1
