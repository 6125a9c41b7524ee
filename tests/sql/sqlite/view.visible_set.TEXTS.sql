SELECT summaries.summary,
  summaries.body,
  summaries.facts,
  summaries.notice
FROM summaries
WHERE summaries.tree_id = :tree_id
  AND summaries.summary IN (
    SELECT CAST(numbers.value AS INTEGER) AS value
    FROM json_each(:numbers) AS numbers
  )
