-- face.health.NEWEST_BACKUP
SELECT max(copies.made_at) AS max_1
FROM copies
WHERE copies.size IS NOT NULL

-- face.store.OTHERS_SESSIONS
SELECT sessions.id
FROM sessions
WHERE sessions.tree_id = :tree_id
  AND (sessions.owner IS NULL OR sessions.owner != :owner)
LIMIT 1 OFFSET :param_1

