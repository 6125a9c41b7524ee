INSERT INTO session_ids (id, tree_id)
VALUES (:id, :tree_id)
