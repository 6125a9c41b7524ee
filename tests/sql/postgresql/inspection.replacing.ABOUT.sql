SELECT tool_results.seq,
  tool_results.tool_name,
  tool_result_paths.path
FROM tool_results
LEFT OUTER JOIN tool_result_paths ON tool_result_paths.tree_id = %(tree_id)s::BIGINT
  AND tool_result_paths.branch = tool_results.branch
  AND tool_result_paths.seq = tool_results.seq
WHERE tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = %(branch)s::BIGINT
  AND tool_results.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND tool_results.seq IN (
    SELECT CAST(places.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(%(places)s AS json)) AS places
  )
ORDER BY tool_results.seq,
  tool_result_paths.path
