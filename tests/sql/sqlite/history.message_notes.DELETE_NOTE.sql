DELETE FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.branch = :branch
  AND notes.seq = :seq
  AND notes."key" = :key
  AND notes.owner IS :owner
