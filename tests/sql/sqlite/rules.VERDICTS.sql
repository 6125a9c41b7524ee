WITH RECURSIVE walk(branch, parent_branch, first, last) AS 
(SELECT branches.branch AS branch, branches.parent_branch AS parent_branch, branches.parent_position + 1 AS first, :last AS last 
FROM branches 
WHERE branches.tree_id = :tree_id AND branches.branch = :branch UNION ALL SELECT parents.branch AS branch, parents.parent_branch AS parent_branch, parents.parent_position + 1 AS anon_2, CASE WHEN (walk.first <= :last) THEN walk.first - 1 ELSE :last END AS anon_3 
FROM branches AS parents JOIN walk ON parents.branch = walk.parent_branch 
WHERE parents.tree_id = :tree_id AND walk.first > :start), 
segments AS 
(SELECT walk.branch AS branch, CASE WHEN (walk.first < :start) THEN :start ELSE walk.first END AS first, walk.last AS last 
FROM walk 
WHERE CASE WHEN (walk.first < :start) THEN :start ELSE walk.first END <= walk.last), 
kinds AS 
(SELECT overrides."key" AS name, overrides.value AS kind 
FROM json_each(:kinds) AS overrides UNION ALL SELECT tool_kinds.name AS name, tool_kinds.kind AS kind 
FROM tool_kinds 
WHERE (tool_kinds.name NOT IN (SELECT overrides."key" 
FROM json_each(:kinds) AS overrides))), 
results AS 
(SELECT tool_results.branch AS branch, tool_results.seq AS seq, tool_results.call_seq AS call_seq, tool_results.call_position AS call_position, tool_results.tool_name AS tool_name, tool_results.at AS at, tool_results.status AS status, tool_results.exit_code AS exit_code, tool_results.has_stderr AS has_stderr, tool_results.error_prefix AS error_prefix, tool_results.length AS length, tool_results.size AS size, tool_results.paths_complete AS paths_complete, kinds.kind AS kind, CASE WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (kinds.kind = 'terminal') THEN 1 ELSE 0 END AS is_terminal, CASE WHEN (kinds.kind = 'file_read') THEN 1 ELSE 0 END AS is_read 
FROM segments JOIN tool_results ON tool_results.tree_id = :tree_id AND tool_results.branch = segments.branch AND tool_results.seq BETWEEN segments.first AND segments.last LEFT OUTER JOIN kinds ON tool_results.tool_name = kinds.name 
WHERE tool_results.seq >= :start AND (tool_results.call_seq >= :start OR :adopt = 1)), 
judged AS 
(SELECT results.branch AS branch, results.seq AS seq, results.call_seq AS call_seq, results.call_position AS call_position, results.tool_name AS tool_name, results.at AS at, results.status AS status, results.exit_code AS exit_code, results.has_stderr AS has_stderr, results.error_prefix AS error_prefix, results.length AS length, results.size AS size, results.paths_complete AS paths_complete, results.kind AS kind, results.is_terminal AS is_terminal, results.is_read AS is_read, CASE WHEN (results.error_prefix = 1) THEN 1 WHEN (results.status = 'error') THEN 1 WHEN (results.has_stderr = 1 AND results.is_terminal = 1 AND (:stderr_always = 1 OR :stderr_nonzero = 1 AND coalesce(results.exit_code, 1) != 0)) THEN 1 WHEN (:exit_code_is_error = 1 AND results.exit_code != 0 AND results.is_terminal = 1) THEN 1 ELSE 0 END AS is_error, CASE WHEN (results.status = 'pending') THEN 1 ELSE 0 END AS is_pending 
FROM results), 
ranked AS 
(SELECT judged.branch AS branch, judged.seq AS seq, judged.call_seq AS call_seq, judged.call_position AS call_position, judged.tool_name AS tool_name, judged.at AS at, judged.status AS status, judged.exit_code AS exit_code, judged.has_stderr AS has_stderr, judged.error_prefix AS error_prefix, judged.length AS length, judged.size AS size, judged.paths_complete AS paths_complete, judged.kind AS kind, judged.is_terminal AS is_terminal, judged.is_read AS is_read, judged.is_error AS is_error, judged.is_pending AS is_pending, row_number() OVER (PARTITION BY CASE WHEN (judged.at IS NULL) THEN 0 WHEN (judged.is_error = 1 AND :errors_take_slots = 0) THEN 0 ELSE 1 END ORDER BY judged.at DESC, judged.seq DESC) AS nth 
FROM judged), 
reads AS 
(SELECT tool_result_paths.seq AS seq, judged.at AS at, tool_result_paths.path AS path, tool_result_paths.start_line AS start_line, tool_result_paths.end_line AS end_line, tool_result_paths.contiguous AS contiguous, sum(CASE WHEN (:dedupe = 1) THEN 1 ELSE tool_result_paths.mentions END) OVER (PARTITION BY tool_result_paths.path ORDER BY judged.at DESC, judged.seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS nth 
FROM judged JOIN tool_result_paths ON tool_result_paths.tree_id = :tree_id AND tool_result_paths.branch = judged.branch AND tool_result_paths.seq = judged.seq 
WHERE judged.is_read = 1 AND judged.is_error = 0 AND judged.is_pending = 0 AND judged.at IS NOT NULL), 
files AS 
(SELECT reads.seq AS seq, min(CASE WHEN (reads.nth > :file_read_keep) THEN 1 ELSE 0 END) AS all_stale, max(CASE WHEN (reads.nth > :file_read_keep) THEN 1 ELSE 0 END) AS any_stale 
FROM reads GROUP BY reads.seq)
 SELECT ranked.seq, ranked.call_seq, ranked.call_position, CASE WHEN (:terminal = 1 AND ranked.is_terminal = 1 AND ranked.is_error = 0 AND ranked.is_pending = 0 AND ranked.at IS NOT NULL AND ranked.seq < :protected_from AND ranked.nth > :terminal_keep AND ranked.at < :old_before AND ranked.length > 0 AND (:min_saving = 0 OR ranked.length - :terminal_placeholder >= :min_saving)) THEN 'terminal' WHEN (:file_read = 1 AND ranked.is_read = 1 AND ranked.is_error = 0 AND ranked.is_pending = 0 AND ranked.at IS NOT NULL AND ranked.seq < :protected_from AND (:batch_all = 1 AND files.all_stale = 1 AND ranked.paths_complete = 1 OR :batch_any = 1 AND files.any_stale = 1) AND (:min_saving = 0 OR ranked.length - :file_read_placeholder >= :min_saving)) THEN 'file_read' WHEN (:tool_output = 1 AND ranked.seq < :running_from AND NOT (ranked.is_error = 1 AND :errors_stay = 1) AND ranked.is_pending = 0) THEN 'tool_output' WHEN (ranked.is_error = 1) THEN 'error' WHEN (ranked.is_pending = 1) THEN 'pending' WHEN (ranked.at IS NULL) THEN 'undated' WHEN (ranked.seq >= :protected_from) THEN 'current_turn' WHEN (:terminal = 1 AND ranked.is_terminal = 1 AND ranked.nth <= :terminal_keep) THEN 'newest' WHEN (:terminal = 1 AND ranked.is_terminal = 1 AND ranked.at >= :old_before) THEN 'young' WHEN (:terminal = 1 AND ranked.is_terminal = 1 OR :file_read = 1 AND ranked.is_read = 1 AND (:batch_all = 1 AND files.all_stale = 1 AND ranked.paths_complete = 1 OR :batch_any = 1 AND files.any_stale = 1)) THEN 'small' WHEN (:file_read = 1 AND ranked.is_read = 1 AND files.seq IS NULL) THEN 'no_path' WHEN (:file_read = 1 AND ranked.is_read = 1) THEN 'newest_reads' ELSE 'other' END AS anon_1, ranked.nth, ranked.length, ranked.size, ranked.tool_name, ranked.kind 
FROM ranked LEFT OUTER JOIN files ON files.seq = ranked.seq ORDER BY ranked.seq
