SELECT tool_result_paths.seq,
  tool_result_paths.path
FROM tool_result_paths
WHERE tool_result_paths.tree_id = %(tree_id)s::BIGINT
  AND tool_result_paths.branch = %(branch)s::BIGINT
  AND tool_result_paths.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND tool_result_paths.seq IN (
    SELECT CAST(places.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(%(places)s AS json)) AS places
  )
ORDER BY tool_result_paths.seq,
  tool_result_paths.path
