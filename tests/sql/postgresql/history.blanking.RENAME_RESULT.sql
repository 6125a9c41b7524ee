UPDATE tool_results
SET tool_name=%(new_name)s::VARCHAR,
  paths_complete=%(complete)s::INTEGER
WHERE tool_results.tree_id = %(tree)s::BIGINT
  AND tool_results.branch = %(of)s::BIGINT
  AND tool_results.seq = %(position)s::BIGINT
