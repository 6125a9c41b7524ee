SELECT summaries.summary,
  summaries.body,
  summaries.facts,
  summaries.notice
FROM summaries
WHERE summaries.tree_id = %(tree_id)s::BIGINT
  AND summaries.summary IN (
    SELECT CAST(numbers.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(%(numbers)s AS json)) AS numbers
  )
