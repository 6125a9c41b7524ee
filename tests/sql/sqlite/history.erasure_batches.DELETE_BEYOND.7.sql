DELETE FROM tool_calls
WHERE tool_calls.tree_id = :tree_id
  AND tool_calls.branch = :branch
  AND tool_calls.seq > :kept
