SELECT (
  SELECT COUNT(*)
  FROM messages
) + (
  SELECT COUNT(*)
  FROM summaries
)
