INSERT INTO session_keys (tree_id, session_id, "key", value)
VALUES (:tree_id, :session_id, :key, :value)
