SELECT messages.seq,
  messages.content_form,
  messages.content
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
  AND messages.seq IN (
    SELECT CAST(wanted.value AS INTEGER) AS value
    FROM json_each(:wanted) AS wanted
  )
ORDER BY messages.seq
