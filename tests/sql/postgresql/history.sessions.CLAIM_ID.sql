INSERT INTO session_ids (id, tree_id)
VALUES (%(id)s, %(tree_id)s) ON CONFLICT DO NOTHING
