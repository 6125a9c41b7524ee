INSERT INTO search_rows (tree_id, branch, seq, summary, number, words, names)
VALUES (:tree_id, :branch, :seq, :summary, :number, :words, :names)
