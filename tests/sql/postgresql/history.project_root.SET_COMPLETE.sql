UPDATE tool_results
SET paths_complete=%(complete)s::INTEGER
WHERE tool_results.tree_id = %(tree)s::BIGINT
  AND tool_results.branch = %(of)s::BIGINT
  AND tool_results.seq = %(place)s::BIGINT
