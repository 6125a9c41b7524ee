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
  AND notes.at >= %(seen_at)s::BIGINT
  AND (
    notes.at,
    notes.session_id,
    notes.branch,
    notes.seq,
    notes.key
  ) > (
    %(seen_at)s::BIGINT,
    %(seen_session_id)s::VARCHAR COLLATE "C",
    %(seen_branch)s::BIGINT,
    %(seen_seq)s::BIGINT,
    %(seen_key)s::VARCHAR COLLATE "C"
  )
ORDER BY notes.at,
  notes.session_id,
  notes.branch,
  notes.seq,
  notes.key
LIMIT %(limit)s::BIGINT
