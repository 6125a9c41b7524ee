INSERT INTO session_ids (id, tree_id)
VALUES (%(id)s::VARCHAR COLLATE "C", %(tree_id)s::BIGINT)
