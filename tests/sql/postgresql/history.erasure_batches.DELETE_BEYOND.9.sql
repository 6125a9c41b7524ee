DELETE FROM search_rows
WHERE search_rows.tree_id = %(tree_id)s::BIGINT
  AND search_rows.branch = %(branch)s::BIGINT
  AND search_rows.seq > %(kept)s::BIGINT
