DELETE FROM search_rows
WHERE search_rows.tree_id = :tree_id
  AND search_rows.branch = :branch
  AND search_rows.seq > :kept
