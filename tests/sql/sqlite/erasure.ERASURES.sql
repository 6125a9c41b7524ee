SELECT erasures.session_id, CAST(sum(erasures.messages) AS INTEGER) AS sum_1, CAST(sum(erasures.kept_messages) AS INTEGER) AS sum_2, min(erasures.finished_at) AS min_1 
FROM erasures GROUP BY erasures.tree_id, erasures.erasure, erasures.session_id ORDER BY min(erasures.finished_at), erasures.session_id
