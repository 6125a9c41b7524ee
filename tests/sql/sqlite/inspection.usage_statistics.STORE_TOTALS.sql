SELECT (
  SELECT count(*) AS count_1
  FROM sessions
) AS sessions,
  (
    SELECT count(*) AS count_2
    FROM messages
  ) AS messages,
  (
    SELECT count(*) AS count_3
    FROM tool_calls
  ) AS tool_calls
