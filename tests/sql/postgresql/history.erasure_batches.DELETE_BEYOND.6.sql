DELETE FROM tool_results
WHERE tool_results.tree_id = %(tree_id)s::BIGINT
  AND tool_results.branch = %(branch)s::BIGINT
  AND tool_results.seq > %(kept)s::BIGINT
