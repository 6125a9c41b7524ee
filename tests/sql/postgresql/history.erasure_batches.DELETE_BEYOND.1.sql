DELETE FROM notes
WHERE notes.tree_id = %(tree_id)s::BIGINT
  AND notes.branch = %(branch)s::BIGINT
  AND notes.seq > %(kept)s::BIGINT
