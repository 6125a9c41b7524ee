SELECT notes.session_id,
  notes.branch,
  notes.seq,
  notes."key",
  notes.value,
  notes.at
FROM notes
JOIN sessions ON sessions.tree_id = notes.tree_id
  AND sessions.id = notes.session_id
WHERE notes.owner IS :owner
  AND sessions.owner = :owner
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes."key"
LIMIT :limit OFFSET :param_1
