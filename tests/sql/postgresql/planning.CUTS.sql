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
facts AS 
(SELECT message_facts.branch AS branch, message_facts.seq AS seq, message_facts.role AS role, message_facts.turn AS turn 
FROM segments JOIN message_facts ON message_facts.tree_id = %(tree_id)s::BIGINT AND message_facts.branch = segments.branch AND message_facts.seq BETWEEN segments.first AND segments.last 
WHERE message_facts.seq >= %(start)s::BIGINT), 
answers AS 
(SELECT tool_results.call_seq AS call_seq, max(tool_results.seq) AS answered 
FROM segments JOIN tool_results ON tool_results.tree_id = %(tree_id)s::BIGINT AND tool_results.branch = segments.branch AND tool_results.seq BETWEEN segments.first AND segments.last 
WHERE tool_results.call_seq >= %(start)s::BIGINT GROUP BY tool_results.call_seq), 
groups AS 
(SELECT facts.seq AS seq, facts.role AS role, max(coalesce(answers.answered, facts.seq)) OVER (ORDER BY facts.seq ROWS BETWEEN UNBOUNDED PRECEDING AND %(param_1)s::INTEGER PRECEDING) AS reach, sum(CASE WHEN (facts.role IN ('system', 'developer')) THEN 0 ELSE 1 END) OVER (ORDER BY facts.seq ROWS BETWEEN UNBOUNDED PRECEDING AND %(param_2)s::INTEGER PRECEDING) AS hidable 
FROM facts LEFT OUTER JOIN answers ON answers.call_seq = facts.seq)
 SELECT max(CASE WHEN (groups.seq <= %(ideal)s::BIGINT) THEN groups.seq END) AS max_1, min(groups.seq) AS min_1 
FROM groups 
WHERE groups.seq <= %(kept)s::BIGINT AND groups.hidable >= %(least)s::BIGINT AND groups.seq > groups.reach AND (groups.role = 'user' OR %(turns_only)s::BIGINT = 0)
