SELECT tool_result_paths.seq,
  tool_result_paths.path
FROM tool_result_paths
WHERE tool_result_paths.tree_id = :tree_id
  AND tool_result_paths.branch = :branch
  AND tool_result_paths.seq BETWEEN :first AND :last
  AND tool_result_paths.seq IN (
    SELECT CAST(places.value AS INTEGER) AS value
    FROM json_each(:places) AS places
  )
ORDER BY tool_result_paths.seq,
  tool_result_paths.path
