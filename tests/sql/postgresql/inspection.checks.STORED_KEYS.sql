SELECT session_keys.key,
  session_keys.value
FROM session_keys
WHERE session_keys.tree_id = %(tree_id)s::BIGINT
  AND session_keys.session_id = %(session_id)s::VARCHAR COLLATE "C"
