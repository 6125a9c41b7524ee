SELECT branches.parent_position,
  (
    SELECT max(messages.seq) AS max_1
    FROM messages
    WHERE messages.tree_id = %(tree_id)s::BIGINT
      AND messages.branch = %(branch)s::BIGINT
  ) AS anon_1
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
  AND branches.branch = %(branch)s::BIGINT
  AND branches.session_id = %(session_id)s::VARCHAR COLLATE "C"
