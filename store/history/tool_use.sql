-- What the tools on a line were called for: statements on a run of the line.

-- query: answered
-- The calls of one run that have a result in another, or in the same, each with how it ended: a
-- column is an array, since thousands of values are read far faster than rows.
SELECT
  {array:seq}, {array:position}, {array:name}, {array:tool_name}, {array:arguments},
  {array:failed}, {array:at}, {array:result_seq}
FROM ({answered_calls}) AS found

-- part: answered_calls
-- The sum with 0 keeps the planner from finding all calls before the results. Most results have no
-- signs of a command, which are seen sooner than that it is one.
SELECT
  c.seq, c.position, c.name, r.tool_name, c.arguments,
  CASE WHEN {signs} THEN 1 WHEN {command_signs} AND {command} THEN 1 ELSE 0 END AS failed,
  r.at, r.seq AS result_seq
FROM tool_results r
{lookup:call_of_result}
WHERE {results} AND r.call_seq BETWEEN :call_first AND :call_last

-- part: call_of_result
tool_calls c
WHERE c.tree_id = :tree_id AND c.branch = :call_branch
  AND c.seq = r.call_seq + 0 AND c.position = r.call_position

-- query: call_count
SELECT COUNT(*) FROM tool_calls c
WHERE c.tree_id = :tree_id AND c.branch = :branch AND c.seq BETWEEN :first AND :last

-- query: call_places
SELECT c.seq, c.position FROM tool_calls c
WHERE c.tree_id = :tree_id AND c.branch = :branch AND c.seq BETWEEN :first AND :last

-- query: file_uses
-- The files that calls named.
SELECT p.path, p.seq, r.call_seq, {kind} AS kind, {ended} AS at
FROM tool_result_paths p
{lookup:result_of_path}
LEFT JOIN tool_kinds k ON k.name = r.tool_name
WHERE p.tree_id = :tree_id AND p.branch = :branch AND p.seq BETWEEN :first AND :last
  AND (:every = 1 OR p.path = :path)

-- part: result_of_path
tool_results r
WHERE r.tree_id = :tree_id AND r.branch = :branch AND r.seq = p.seq

-- part: results
r.tree_id = :tree_id AND r.branch = :branch AND r.seq BETWEEN :first AND :last

-- part: ended
-- When a result came; of one without a time, when it was stored.
COALESCE(r.at, (
  SELECT t.stored_at FROM messages t
  WHERE t.tree_id = :tree_id AND t.branch = :branch AND t.seq = r.seq
))

-- part: kind
COALESCE(k.kind, 'other')

-- part: command
(
  r.tool_name IN (SELECT name FROM tool_kinds WHERE kind = 'terminal')
  OR (r.tool_name IS NULL AND r.looks_terminal = 1)
)
