SELECT messages.stored_at,
  messages.wire_format
FROM messages
WHERE messages.tree_id = %(tree_id)s::BIGINT
  AND messages.branch = %(branch)s::BIGINT
  AND messages.seq = %(seq)s::BIGINT
