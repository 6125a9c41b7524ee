SELECT tool_results.seq,
  tool_results.tool_name,
  tool_result_paths.path
FROM tool_results
LEFT OUTER JOIN tool_result_paths ON tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = tool_results.branch
  AND tool_result_paths.seq = tool_results.seq
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq BETWEEN :first AND :last
  AND tool_results.seq IN (
    SELECT CAST(places.value AS INTEGER) AS value
    FROM json_each(:places) AS places
  )
ORDER BY tool_results.seq,
  tool_result_paths.path
