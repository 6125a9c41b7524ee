SELECT count(*) AS count_1
FROM redactions
WHERE redactions.tree_id = %(tree_id)s::BIGINT
