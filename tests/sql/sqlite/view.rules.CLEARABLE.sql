WITH segments AS MATERIALIZED (
  SELECT json_extract(value, '$[0]') AS branch,
    json_extract(value, '$[1]') AS first,
    json_extract(value, '$[2]') AS last
  FROM json_each(:runs)
),
newest_first AS (
  SELECT tool_results.seq,
    ROW_NUMBER() OVER (ORDER BY tool_results.seq DESC) AS nth
  FROM segments CROSS
  JOIN tool_results
  WHERE tool_results.tree_id = :tree_id
    AND tool_results.branch = segments.branch
    AND tool_results.seq BETWEEN segments.first AND segments.last
    AND (tool_results.call_seq >= :start OR :adopt = 1)
    AND tool_results.seq < :judged_before
    AND CASE
      WHEN tool_results.length = 10
      AND EXISTS (
        SELECT messages.seq
        FROM messages
        WHERE messages.tree_id = :tree_id
          AND messages.branch = tool_results.branch
          AND messages.seq = tool_results.seq
          AND messages.content = '[redacted]'
          AND messages.extra LIKE '%"redacted"_true%'
      ) THEN 1
      ELSE 0
    END = 0
)
SELECT seq
FROM newest_first
WHERE nth = :clear_keep + 1
