WITH RECURSIVE walk(branch, parent_branch, first, last) AS 
(SELECT branches.branch AS branch, branches.parent_branch AS parent_branch, branches.parent_position + 1 AS first, %(last)s::BIGINT AS last 
FROM branches 
WHERE branches.tree_id = %(tree_id)s::BIGINT AND branches.branch = %(branch)s::BIGINT UNION ALL SELECT parents.branch AS branch, parents.parent_branch AS parent_branch, parents.parent_position + 1 AS anon_1, CASE WHEN (walk.first <= %(last)s::BIGINT) THEN walk.first - 1 ELSE %(last)s::BIGINT END AS anon_2 
FROM branches AS parents JOIN walk ON parents.branch = walk.parent_branch 
WHERE parents.tree_id = %(tree_id)s::BIGINT AND walk.first > %(start)s::BIGINT), 
segments AS 
(SELECT walk.branch AS branch, CASE WHEN (walk.first < %(start)s::BIGINT) THEN %(start)s::BIGINT ELSE walk.first END AS first, walk.last AS last 
FROM walk 
WHERE CASE WHEN (walk.first < %(start)s::BIGINT) THEN %(start)s::BIGINT ELSE walk.first END <= walk.last), 
judged AS 
(SELECT tool_results.branch AS branch, tool_results.seq AS seq, tool_results.tool_name AS tool_name, tool_results.at AS at, tool_results.length AS length, tool_results.size AS size, tool_results.paths_complete AS paths_complete, CASE WHEN (%(sniff)s::BIGINT = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (tool_results.tool_name IN (SELECT tool_kinds.name 
FROM tool_kinds 
WHERE tool_kinds.kind = 'terminal' AND (tool_kinds.name NOT IN (SELECT pairs.key 
FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs)) UNION ALL SELECT pairs.key 
FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs 
WHERE pairs.value = 'terminal')) THEN 1 ELSE 0 END AS is_terminal, CASE WHEN (tool_results.tool_name IN (SELECT tool_kinds.name 
FROM tool_kinds 
WHERE tool_kinds.kind = 'file_read' AND (tool_kinds.name NOT IN (SELECT pairs.key 
FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs)) UNION ALL SELECT pairs.key 
FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs 
WHERE pairs.value = 'file_read') AND tool_results.seq < %(judged_before)s::BIGINT) THEN 1 ELSE 0 END AS is_read, CASE WHEN (tool_results.error_prefix = 1) THEN 1 WHEN (tool_results.status = 'error') THEN 1 WHEN (tool_results.has_stderr = 1 AND CASE WHEN (%(sniff)s::BIGINT = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (tool_results.tool_name IN (SELECT tool_kinds.name 
FROM tool_kinds 
WHERE tool_kinds.kind = 'terminal' AND (tool_kinds.name NOT IN (SELECT pairs.key 
FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs)) UNION ALL SELECT pairs.key 
FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs 
WHERE pairs.value = 'terminal')) THEN 1 ELSE 0 END = 1 AND (%(stderr_always)s::BIGINT = 1 OR %(stderr_nonzero)s::BIGINT = 1 AND coalesce(tool_results.exit_code, 1) != 0)) THEN 1 WHEN (%(exit_code_is_error)s::BIGINT = 1 AND tool_results.exit_code != 0 AND CASE WHEN (%(sniff)s::BIGINT = 1 OR coalesce(tool_results.tool_name, '') = '') THEN tool_results.looks_terminal WHEN (tool_results.tool_name IN (SELECT tool_kinds.name 
FROM tool_kinds 
WHERE tool_kinds.kind = 'terminal' AND (tool_kinds.name NOT IN (SELECT pairs.key 
FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs)) UNION ALL SELECT pairs.key 
FROM json_each_text(CAST(%(kinds)s AS json)) AS pairs 
WHERE pairs.value = 'terminal')) THEN 1 ELSE 0 END = 1) THEN 1 ELSE 0 END AS is_error, CASE WHEN (tool_results.status = 'pending') THEN 1 ELSE 0 END AS is_pending 
FROM segments JOIN tool_results ON tool_results.tree_id = %(tree_id)s::BIGINT AND tool_results.branch = segments.branch AND tool_results.seq BETWEEN segments.first AND segments.last 
WHERE tool_results.seq >= %(start)s::BIGINT AND (tool_results.call_seq >= %(start)s::BIGINT OR %(adopt)s::BIGINT = 1)), 
lean_reads AS 
(SELECT judged.seq AS seq, judged.at AS at, tool_result_paths.path AS path, CASE WHEN (tool_result_paths.path IS NULL) THEN 0 WHEN (%(dedupe)s::BIGINT = 1) THEN 1 ELSE tool_result_paths.mentions END AS mentions, CASE WHEN (%(sniff)s::BIGINT = 1 AND %(terminal)s::BIGINT = 1 AND judged.is_terminal = 1 AND judged.is_error = 0 AND judged.is_pending = 0 AND judged.at IS NOT NULL AND judged.seq < %(protected_from)s::BIGINT AND judged.at < %(old_before)s::BIGINT AND judged.length > 0 AND (judged.at < %(slot_at)s::BIGINT OR judged.at = %(slot_at)s::BIGINT AND judged.seq <= %(slot_seq)s::BIGINT) AND (%(min_saving)s::BIGINT = 0 OR judged.length - %(terminal_placeholder)s::BIGINT >= %(min_saving)s::BIGINT)) THEN NULL WHEN (%(file_read)s::BIGINT = 1 AND judged.seq < %(protected_from)s::BIGINT AND (%(batch_any)s::BIGINT = 1 OR judged.paths_complete = 1) AND (%(min_saving)s::BIGINT = 0 OR judged.length - %(file_read_placeholder)s::BIGINT >= %(min_saving)s::BIGINT)) THEN ((11 * judged.size - judged.length) + 39) / 40 - %(file_read_tokens)s::BIGINT END AS saving 
FROM judged LEFT OUTER JOIN tool_result_paths ON tool_result_paths.tree_id = %(tree_id)s::BIGINT AND tool_result_paths.branch = judged.branch AND tool_result_paths.seq = judged.seq 
WHERE judged.is_read = 1 AND judged.is_error = 0 AND judged.is_pending = 0 AND judged.at IS NOT NULL), 
again AS 
(SELECT lean_reads.seq AS seq, lean_reads.saving AS saving, sum(lean_reads.mentions) OVER (PARTITION BY lean_reads.path ORDER BY lean_reads.at DESC, lean_reads.seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS nth 
FROM lean_reads), 
old_reads AS 
(SELECT again.seq AS seq, max(again.saving) AS saving 
FROM again GROUP BY again.seq 
HAVING CASE WHEN (%(batch_any)s::BIGINT = 1) THEN max(again.nth) ELSE min(again.nth) END > %(file_read_keep)s::BIGINT)
 SELECT old_reads.seq, CAST(old_reads.saving AS BIGINT) AS saving 
FROM old_reads 
WHERE old_reads.saving IS NOT NULL
