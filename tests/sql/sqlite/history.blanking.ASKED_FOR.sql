SELECT tool_results.seq,
  tool_calls.name,
  messages.name AS name_1
FROM tool_results
JOIN messages ON messages.tree_id = tool_results.tree_id
  AND messages.branch = tool_results.branch
  AND messages.seq = tool_results.seq
JOIN tool_calls ON tool_calls.tree_id = tool_results.tree_id
  AND tool_calls.branch = :call_branch
  AND tool_calls.seq = tool_results.call_seq
  AND tool_calls.position = tool_results.call_position
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq > :seq
  AND tool_results.call_seq = :seq
