DELETE FROM search_rows
WHERE search_rows.tree_id = %(tree)s::BIGINT
  AND search_rows.branch = %(of)s::BIGINT
  AND search_rows.seq = %(position)s::BIGINT
