SELECT search_rows.number,
  search_rows.tree_id,
  search_rows.branch,
  search_rows.seq,
  search_rows.summary,
  messages.role,
  coalesce(messages.created_at, messages.stored_at) AS coalesce_1,
  tool_results.tool_name
FROM search_rows
JOIN messages ON messages.tree_id = search_rows.tree_id
  AND messages.branch = search_rows.branch
  AND messages.seq = search_rows.seq
LEFT OUTER JOIN tool_results ON tool_results.tree_id = search_rows.tree_id
  AND tool_results.branch = search_rows.branch
  AND tool_results.seq = search_rows.seq
WHERE search_rows.number IN (
  SELECT CAST(numbers.value AS BIGINT) AS value
  FROM json_array_elements_text(CAST(%(numbers)s AS json)) AS numbers
)
  AND search_rows.summary = 0
