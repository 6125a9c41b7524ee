DELETE FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.branch = :branch
  AND notes.seq > :kept
