DELETE FROM search_rows
WHERE search_rows.tree_id = :tree_id
  AND search_rows.summary > 0
  AND (
    search_rows.summary NOT IN (
      SELECT summaries.summary
      FROM summaries
      WHERE summaries.tree_id = :tree_id
    )
  )
