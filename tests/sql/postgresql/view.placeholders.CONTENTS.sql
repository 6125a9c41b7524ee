SELECT messages.seq,
  messages.content_form,
  messages.content
FROM messages
WHERE messages.tree_id = %(tree_id)s::BIGINT
  AND messages.branch = %(branch)s::BIGINT
  AND messages.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT
  AND messages.seq IN (
    SELECT CAST(wanted.value AS BIGINT) AS value
    FROM json_array_elements_text(CAST(%(wanted)s AS json)) AS wanted
  )
ORDER BY messages.seq
