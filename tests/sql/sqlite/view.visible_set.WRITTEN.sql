SELECT summaries.summary,
  summaries.title,
  summaries.body,
  summaries.key_actions,
  summaries.file_changes
FROM summaries
WHERE summaries.tree_id = :tree_id
  AND summaries.summary IN (
    SELECT CAST(numbers.value AS INTEGER) AS value
    FROM json_each(:numbers) AS numbers
  )
