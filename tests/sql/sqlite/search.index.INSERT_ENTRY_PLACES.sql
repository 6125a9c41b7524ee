INSERT INTO search_rows (tree_id, branch, seq, summary, number)
VALUES (:tree_id, :branch, :seq, :summary, :number)
