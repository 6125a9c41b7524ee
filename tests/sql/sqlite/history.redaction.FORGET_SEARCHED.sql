DELETE FROM search_rows
WHERE search_rows.tree_id = :tree
  AND search_rows.branch = :of
  AND search_rows.seq = :position
