SELECT messages.seq,
  messages.role,
  messages.name,
  messages.status,
  messages.tool_call_id,
  messages.created_at,
  messages.message_id,
  messages.extra,
  messages.content_form,
  CASE
    WHEN (
      messages.seq IN (
        SELECT CAST(replaced.value AS BIGINT) AS value
        FROM json_array_elements_text(CAST(%(replaced)s AS json)) AS replaced
      )
    ) THEN NULL
    ELSE messages.content
  END AS anon_1
FROM messages
WHERE messages.tree_id = %(tree_id)s::BIGINT
  AND messages.branch = %(branch)s::BIGINT
  AND messages.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
ORDER BY messages.seq
