SELECT coalesce(max(notes.note), 0) + 1 AS anon_1
FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.branch = :branch
  AND notes.seq = :seq
