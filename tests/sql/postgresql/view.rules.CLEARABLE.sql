WITH segments AS MATERIALIZED (
  SELECT CAST(value ->> 0 AS BIGINT) AS branch,
    CAST(value ->> 1 AS BIGINT) AS first,
    CAST(value ->> 2 AS BIGINT) AS last
  FROM json_array_elements(CAST(%(runs)s::VARCHAR AS json))
),
newest_first AS (
  SELECT tool_results.seq,
    ROW_NUMBER() OVER (ORDER BY tool_results.seq DESC) AS nth
  FROM segments CROSS
  JOIN tool_results
  WHERE tool_results.tree_id = %(tree_id)s::BIGINT
    AND tool_results.branch = segments.branch
    AND tool_results.seq BETWEEN segments.first AND segments.last
    AND (
      tool_results.call_seq >= %(start)s::BIGINT
      OR %(adopt)s::BIGINT = 1
    )
    AND tool_results.seq < %(judged_before)s::BIGINT
    AND CASE
      WHEN tool_results.length = 10
      AND EXISTS (
        SELECT messages.seq
        FROM messages
        WHERE messages.tree_id = %(tree_id)s::BIGINT
          AND messages.branch = tool_results.branch
          AND messages.seq = tool_results.seq
          AND messages.content = '[redacted]'
          AND messages.extra LIKE '%%"redacted"_true%%'
      ) THEN 1
      ELSE 0
    END = 0
)
SELECT seq
FROM newest_first
WHERE nth = %(clear_keep)s::BIGINT + 1
