DELETE FROM tool_result_paths
WHERE tool_result_paths.tree_id = %(tree_id)s::BIGINT
  AND tool_result_paths.branch = %(branch)s::BIGINT
  AND tool_result_paths.seq > %(kept)s::BIGINT
