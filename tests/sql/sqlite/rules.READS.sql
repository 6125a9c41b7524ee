WITH RECURSIVE walk(branch, parent_branch, first, last) AS 
(SELECT branches.branch AS branch, branches.parent_branch AS parent_branch, branches.parent_position + 1 AS first, :last AS last 
FROM branches 
WHERE branches.tree_id = :tree_id AND branches.branch = :branch UNION ALL SELECT parents.branch AS branch, parents.parent_branch AS parent_branch, parents.parent_position + 1 AS anon_1, CASE WHEN (walk.first <= :last) THEN walk.first - 1 ELSE :last END AS anon_2 
FROM branches AS parents JOIN walk ON parents.branch = walk.parent_branch 
WHERE parents.tree_id = :tree_id AND walk.first > :start), 
segments AS 
(SELECT walk.branch AS branch, CASE WHEN (walk.first < :start) THEN :start ELSE walk.first END AS first, walk.last AS last 
FROM walk 
WHERE CASE WHEN (walk.first < :start) THEN :start ELSE walk.first END <= walk.last), 
judged AS 
(SELECT tool_results.branch AS branch, tool_results.seq AS seq, tool_results.tool_name AS tool_name, tool_results.at AS at, tool_results.length AS length, tool_results.size AS size, tool_results.paths_complete AS paths_complete, CASE WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (tool_results.tool_name IN (SELECT tool_kinds.name 
FROM tool_kinds 
WHERE tool_kinds.kind = 'terminal' AND (tool_kinds.name NOT IN (SELECT pairs."key" 
FROM json_each(:kinds) AS pairs)) UNION ALL SELECT pairs."key" 
FROM json_each(:kinds) AS pairs 
WHERE pairs.value = 'terminal')) THEN 1 ELSE 0 END AS is_terminal, CASE WHEN (tool_results.tool_name IN (SELECT tool_kinds.name 
FROM tool_kinds 
WHERE tool_kinds.kind = 'file_read' AND (tool_kinds.name NOT IN (SELECT pairs."key" 
FROM json_each(:kinds) AS pairs)) UNION ALL SELECT pairs."key" 
FROM json_each(:kinds) AS pairs 
WHERE pairs.value = 'file_read') AND tool_results.seq < :judged_before) THEN 1 ELSE 0 END AS is_read, CASE WHEN (tool_results.error_prefix = 1) THEN 1 WHEN (tool_results.status = 'error') THEN 1 WHEN (tool_results.has_stderr = 1 AND CASE WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (tool_results.tool_name IN (SELECT tool_kinds.name 
FROM tool_kinds 
WHERE tool_kinds.kind = 'terminal' AND (tool_kinds.name NOT IN (SELECT pairs."key" 
FROM json_each(:kinds) AS pairs)) UNION ALL SELECT pairs."key" 
FROM json_each(:kinds) AS pairs 
WHERE pairs.value = 'terminal')) THEN 1 ELSE 0 END = 1 AND (:stderr_always = 1 OR :stderr_nonzero = 1 AND coalesce(tool_results.exit_code, 1) != 0)) THEN 1 WHEN (:exit_code_is_error = 1 AND tool_results.exit_code != 0 AND CASE WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (tool_results.tool_name IN (SELECT tool_kinds.name 
FROM tool_kinds 
WHERE tool_kinds.kind = 'terminal' AND (tool_kinds.name NOT IN (SELECT pairs."key" 
FROM json_each(:kinds) AS pairs)) UNION ALL SELECT pairs."key" 
FROM json_each(:kinds) AS pairs 
WHERE pairs.value = 'terminal')) THEN 1 ELSE 0 END = 1) THEN 1 ELSE 0 END AS is_error, CASE WHEN (tool_results.status = 'pending') THEN 1 ELSE 0 END AS is_pending 
FROM segments JOIN tool_results ON tool_results.tree_id = :tree_id AND tool_results.branch = segments.branch AND tool_results.seq BETWEEN segments.first AND segments.last 
WHERE tool_results.seq >= :start AND (tool_results.call_seq >= :start OR :adopt = 1))
 SELECT judged.seq, tool_result_paths.path, tool_result_paths.start_line, tool_result_paths.end_line, tool_result_paths.contiguous 
FROM judged LEFT OUTER JOIN tool_result_paths ON tool_result_paths.tree_id = :tree_id AND tool_result_paths.branch = judged.branch AND tool_result_paths.seq = judged.seq 
WHERE judged.is_read = 1 AND judged.is_error = 0 AND judged.is_pending = 0 AND judged.at IS NOT NULL ORDER BY judged.at DESC, judged.seq DESC
