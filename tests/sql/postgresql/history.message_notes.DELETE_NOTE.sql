DELETE FROM notes
WHERE notes.tree_id = %(tree_id)s::BIGINT
  AND notes.branch = %(branch)s::BIGINT
  AND notes.seq = %(seq)s::BIGINT
  AND notes.key = %(key)s::VARCHAR COLLATE "C"
  AND notes.owner IS NOT DISTINCT FROM %(owner)s::VARCHAR COLLATE "C"
