DELETE FROM tool_calls
WHERE tool_calls.tree_id = %(tree_id)s::BIGINT
  AND tool_calls.branch = %(branch)s::BIGINT
  AND tool_calls.seq > %(kept)s::BIGINT
