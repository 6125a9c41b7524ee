SELECT tool_results.tree_id,
  tool_results.branch,
  tool_results.seq,
  tool_results.call_seq,
  tool_results.call_position,
  tool_results.tool_name,
  tool_results.at,
  tool_results.status,
  tool_results.exit_code,
  tool_results.has_stderr,
  tool_results.error_prefix,
  tool_results.looks_terminal,
  tool_results.length,
  tool_results.size,
  tool_results.paths_complete
FROM tool_results
WHERE tool_results.tree_id = :tree_id
  AND tool_results.branch = :branch
  AND tool_results.seq BETWEEN :first AND :last
ORDER BY tool_results.tree_id,
  tool_results.branch,
  tool_results.seq
