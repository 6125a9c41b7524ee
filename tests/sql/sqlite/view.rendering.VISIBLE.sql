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
        SELECT CAST(replaced.value AS INTEGER) AS value
        FROM json_each(:replaced) AS replaced
      )
    ) THEN NULL
    ELSE messages.content
  END AS anon_1
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
ORDER BY messages.seq
