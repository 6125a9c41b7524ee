SELECT search_rows.number,
  search_rows.tree_id,
  search_rows.branch,
  search_rows.seq,
  search_rows.summary,
  'summary' AS role,
  summaries.created_at,
  summaries.model AS tool
FROM search_rows
JOIN summaries ON summaries.tree_id = search_rows.tree_id
  AND summaries.summary = search_rows.summary
WHERE search_rows.number IN (
  SELECT CAST(numbers.value AS BIGINT) AS value
  FROM json_array_elements_text(CAST(%(numbers)s AS json)) AS numbers
)
