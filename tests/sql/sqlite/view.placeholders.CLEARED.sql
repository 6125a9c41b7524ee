SELECT messages.content_form,
  messages.content,
  tool_results.exit_code
FROM messages
JOIN tool_results ON tool_results.tree_id = messages.tree_id
  AND tool_results.branch = messages.branch
  AND tool_results.seq = messages.seq
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq = :seq
