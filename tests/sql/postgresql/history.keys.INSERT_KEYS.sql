INSERT INTO session_keys (tree_id, session_id, key, value)
VALUES (
  %(tree_id)s::BIGINT,
  %(session_id)s::VARCHAR COLLATE "C",
  %(key)s::VARCHAR COLLATE "C",
  %(value)s::VARCHAR COLLATE "C"
)
