SELECT messages.tree_id,
  messages.branch,
  messages.seq,
  messages.role,
  messages.name,
  messages.status,
  messages.tool_call_id,
  messages.created_at,
  messages.message_id,
  messages.extra,
  messages.content_form,
  messages.content,
  messages.stored_at,
  messages.wire_format,
  messages.digest
FROM messages
WHERE messages.tree_id = :tree_id
  AND messages.branch = :branch
  AND messages.seq BETWEEN :first AND :last
ORDER BY messages.tree_id,
  messages.branch,
  messages.seq
