SELECT messages.tree_id,
  messages.branch,
  messages.seq
FROM messages
WHERE messages.message_id = %(message_id)s::VARCHAR
