DELETE FROM tool_results
WHERE tool_results.tree_id = %(tree)s::BIGINT
  AND tool_results.branch = %(of)s::BIGINT
  AND tool_results.seq = %(position)s::BIGINT
