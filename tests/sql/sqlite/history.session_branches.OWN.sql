SELECT branches.parent_position,
  (
    SELECT max(messages.seq) AS max_1
    FROM messages
    WHERE messages.tree_id = :tree_id
      AND messages.branch = :branch
  ) AS anon_1
FROM branches
WHERE branches.tree_id = :tree_id
  AND branches.branch = :branch
  AND branches.session_id = :session_id
