DELETE FROM messages
WHERE messages.tree_id = %(tree_id)s::BIGINT
  AND messages.branch = %(branch)s::BIGINT
  AND messages.seq > %(kept)s::BIGINT
