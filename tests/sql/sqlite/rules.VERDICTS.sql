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
overrides AS MATERIALIZED 
(SELECT pairs."key" AS name, pairs.value AS kind 
FROM json_each(:kinds) AS pairs), 
judged AS 
(SELECT tool_results.branch AS branch, tool_results.seq AS seq, tool_results.tool_name AS tool_name, tool_results.at AS at, tool_results.length AS length, tool_results.size AS size, tool_results.paths_complete AS paths_complete, coalesce(overrides.kind, tool_kinds.kind) AS kind, tool_results.call_seq AS call_seq, tool_results.call_position AS call_position, CASE WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (coalesce(overrides.kind, tool_kinds.kind) = 'terminal') THEN 1 ELSE 0 END AS is_terminal, CASE WHEN (coalesce(overrides.kind, tool_kinds.kind) = 'file_read' AND tool_results.seq < :judged_before) THEN 1 ELSE 0 END AS is_read, CASE WHEN (tool_results.error_prefix = 1) THEN 1 WHEN (tool_results.status = 'error') THEN 1 WHEN (tool_results.has_stderr = 1 AND CASE WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (coalesce(overrides.kind, tool_kinds.kind) = 'terminal') THEN 1 ELSE 0 END = 1 AND (:stderr_always = 1 OR :stderr_nonzero = 1 AND coalesce(tool_results.exit_code, 1) != 0)) THEN 1 WHEN (:exit_code_is_error = 1 AND tool_results.exit_code != 0 AND CASE WHEN (:sniff = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (coalesce(overrides.kind, tool_kinds.kind) = 'terminal') THEN 1 ELSE 0 END = 1) THEN 1 ELSE 0 END AS is_error, CASE WHEN (tool_results.status = 'pending') THEN 1 ELSE 0 END AS is_pending 
FROM segments JOIN tool_results ON tool_results.tree_id = :tree_id AND tool_results.branch = segments.branch AND tool_results.seq BETWEEN segments.first AND segments.last LEFT OUTER JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name LEFT OUTER JOIN overrides ON tool_results.tool_name = overrides.name 
WHERE tool_results.seq >= :start AND (tool_results.call_seq >= :start OR :adopt = 1)), 
ranked AS 
(SELECT judged.seq AS seq, row_number() OVER (ORDER BY judged.at DESC, judged.seq DESC) AS nth 
FROM judged 
WHERE judged.at IS NOT NULL AND judged.seq < :judged_before AND (judged.is_error = 0 OR :errors_take_slots = 1)), 
reads AS 
(SELECT tool_result_paths.seq AS seq, judged.at AS at, tool_result_paths.path AS path, CASE WHEN (:dedupe = 1) THEN 1 ELSE tool_result_paths.mentions END AS mentions 
FROM judged JOIN tool_result_paths ON tool_result_paths.tree_id = :tree_id AND tool_result_paths.branch = judged.branch AND tool_result_paths.seq = judged.seq 
WHERE judged.is_read = 1 AND judged.is_error = 0 AND judged.is_pending = 0 AND judged.at IS NOT NULL), 
again AS 
(SELECT reads.seq AS seq, sum(reads.mentions) OVER (PARTITION BY reads.path ORDER BY reads.at DESC, reads.seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS nth 
FROM reads), 
files AS 
(SELECT again.seq AS seq, CASE WHEN (:batch_any = 1) THEN max(again.nth) ELSE min(again.nth) END AS nth 
FROM again GROUP BY again.seq)
 SELECT judged.seq, judged.call_seq, judged.call_position, CASE WHEN (:terminal = 1 AND judged.is_terminal = 1 AND judged.is_error = 0 AND judged.is_pending = 0 AND judged.at IS NOT NULL AND judged.seq < :protected_from AND (judged.seq NOT IN (SELECT ranked.seq 
FROM ranked 
WHERE ranked.nth <= :terminal_keep)) AND judged.at < :old_before AND judged.length > 0 AND (:min_saving = 0 OR judged.length - :terminal_placeholder >= :min_saving)) THEN 'terminal' WHEN (:file_read = 1 AND judged.is_read = 1 AND judged.is_error = 0 AND judged.is_pending = 0 AND judged.at IS NOT NULL AND judged.seq < :protected_from AND files.nth > :file_read_keep AND (:batch_any = 1 OR judged.paths_complete = 1) AND (:min_saving = 0 OR judged.length - :file_read_placeholder >= :min_saving)) THEN 'file_read' WHEN (:tool_output = 1 AND judged.seq < :running_from AND (judged.is_error = 0 OR :errors_stay = 0) AND judged.is_pending = 0) THEN 'tool_output' WHEN (judged.is_error = 1) THEN 'error' WHEN (judged.is_pending = 1) THEN 'pending' WHEN (judged.at IS NULL) THEN 'undated' WHEN (judged.seq >= :protected_from) THEN 'current_turn' WHEN (:terminal = 1 AND judged.is_terminal = 1 AND judged.seq IN (SELECT ranked.seq 
FROM ranked 
WHERE ranked.nth <= :terminal_keep)) THEN 'newest' WHEN (:terminal = 1 AND judged.is_terminal = 1 AND judged.at >= :old_before) THEN 'young' WHEN (:terminal = 1 AND judged.is_terminal = 1 OR :file_read = 1 AND judged.is_read = 1 AND files.nth > :file_read_keep AND (:batch_any = 1 OR judged.paths_complete = 1)) THEN 'small' WHEN (:file_read = 1 AND judged.is_read = 1 AND files.seq IS NULL) THEN 'no_path' WHEN (:file_read = 1 AND judged.is_read = 1) THEN 'newest_reads' ELSE 'other' END AS anon_1, judged.length, judged.size, judged.tool_name, judged.kind, judged.branch 
FROM judged LEFT OUTER JOIN files ON files.seq = judged.seq ORDER BY judged.seq
