-- Ten questions to a store, a query each, the same on SQLite and PostgreSQL:
--     convostore sql "$(sed -n '/question 1:/,/;/p' examples/analysis.sql)"
-- What a fork shares with its source is `inherited` there; each question counts it once.

-- question 1: how many tokens were said on each day?
SELECT substr(at, 1, 10) AS day, COUNT(*) AS messages, SUM(tokens) AS tokens
FROM session_messages
WHERE inherited = 0
GROUP BY substr(at, 1, 10)
ORDER BY day;

-- question 2: which files were read most?
SELECT project_root, path, COUNT(*) AS reads
FROM file_log
WHERE inherited = 0 AND kind = 'file_read'
GROUP BY project_root, path
ORDER BY reads DESC, path
LIMIT 20;

-- question 3: which files were edited, and in how many sessions?
SELECT project_root, path, COUNT(*) AS edits, COUNT(DISTINCT session_id) AS sessions
FROM file_log
WHERE inherited = 0 AND kind = 'file_edit'
GROUP BY project_root, path
ORDER BY edits DESC, path
LIMIT 20;

-- question 4: which commands failed, and how?
SELECT session_id, seq, tool_name, exit_code, status, substr(arguments, 1, 100) AS arguments
FROM tool_log
WHERE inherited = 0 AND (exit_code <> 0 OR error_prefix = 1 OR status IN ('error', 'failed'))
ORDER BY at DESC, session_id, seq
LIMIT 50;

-- question 5: which sessions are the longest?
SELECT session_id, title, turns, own_messages, own_tokens
FROM session_log
ORDER BY own_tokens DESC, session_id
LIMIT 20;

-- question 6: how long did users take from one answer to their next question?
-- (The views tell times as texts, what is reckoned with stands in the tables, in ms.)
WITH turns AS (
    SELECT g.tree_id, g.session_id, f.turn,
           MIN(COALESCE(m.created_at, m.stored_at)) AS asked_at,
           MAX(COALESCE(m.created_at, m.stored_at)) AS answered_at
    FROM session_segments g
    JOIN branches b
        ON b.tree_id = g.tree_id AND b.branch = g.branch AND b.session_id = g.session_id
    JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq BETWEEN g.first AND g.last
    JOIN messages m ON m.tree_id = f.tree_id AND m.branch = f.branch AND m.seq = f.seq
    WHERE f.turn > 0
    GROUP BY g.tree_id, g.session_id, f.turn
),
pauses AS (
    SELECT session_id, turn, (answered_at - asked_at) / 1000 AS seconds_working,
           (asked_at - LAG(answered_at) OVER (PARTITION BY tree_id, session_id ORDER BY turn)) / 1000
               AS seconds_away
    FROM turns
)
SELECT session_id, COUNT(*) AS turns, SUM(seconds_working) AS seconds_working,
       MAX(seconds_away) AS longest_away
FROM pauses
GROUP BY session_id
ORDER BY session_id;

-- question 7: what is not sent any more, since when, and for which reason?
-- (What the rules replace follows from a policy and a moment: `convostore replaced` tells it.)
SELECT h.session_id, h.compaction, c.created_at, c.reason, c.policy, COUNT(*) AS messages,
       MIN(h.seq) AS first, MAX(h.seq) AS last, c.tokens_before, c.tokens_after
FROM hidden_messages h
JOIN compaction_log c ON c.session_id = h.session_id AND c.compaction = h.compaction
GROUP BY h.session_id, h.compaction, c.created_at, c.reason, c.policy, c.tokens_before,
         c.tokens_after
ORDER BY h.session_id, h.compaction;

-- question 8: which session continues which?
WITH RECURSIVE tree (session_id, depth, path) AS (
    SELECT session_id, 0, CAST(session_id AS TEXT)
    FROM session_log
    WHERE forked_from IS NULL
    UNION ALL
    SELECT f.session_id, t.depth + 1, t.path || ' > ' || f.session_id
    FROM tree t
    JOIN session_log f ON f.forked_from = t.session_id
)
SELECT t.path, t.depth, s.forked_at, s.own_messages, s.created_at
FROM tree t
JOIN session_log s ON s.session_id = t.session_id
ORDER BY t.path;

-- question 9: what did each model use, and how much of it came from the cache?
SELECT model, COUNT(*) AS requests, SUM(input) AS input, SUM(output) AS output,
       ROUND(100.0 * SUM(cached) / NULLIF(SUM(input), 0)) AS percent_cached, SUM(cost) AS billed
FROM usage_log
GROUP BY model
ORDER BY SUM(input) DESC;

-- question 10: where was a word said, also where a rewind has left it?
-- (`convostore search`, where there is an index, is quicker and knows words, this reads all.)
SELECT session_id, seq, role, at, 1 AS on_line
FROM session_messages
WHERE inherited = 0 AND lower(content) LIKE '%parcel%'
UNION ALL
SELECT session_id, seq, role, at, 0
FROM branch_messages
WHERE lower(content) LIKE '%parcel%'
ORDER BY at, session_id, seq
LIMIT 50;
