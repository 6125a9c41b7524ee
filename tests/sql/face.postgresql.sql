-- face.store.OTHERS_SESSIONS
SELECT sessions.id
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND (
    sessions.owner IS NULL
    OR sessions.owner != :owner COLLATE "C"
  )
LIMIT 1

