SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes.key,
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes.key = %(key)s::VARCHAR COLLATE "C"
  AND notes.owner IS NOT DISTINCT FROM %(owner)s::VARCHAR COLLATE "C"
  AND sessions.owner = %(owner)s::VARCHAR COLLATE "C"
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes.key
LIMIT %(limit)s::BIGINT
