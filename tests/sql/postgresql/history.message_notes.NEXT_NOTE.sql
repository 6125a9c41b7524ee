SELECT coalesce(max(notes.note), 0) + 1 AS anon_1
FROM notes
WHERE notes.tree_id = %(tree_id)s::BIGINT
  AND notes.branch = %(branch)s::BIGINT
  AND notes.seq = %(seq)s::BIGINT
