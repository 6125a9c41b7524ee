SELECT coalesce(max(erasures.erasure), %(coalesce_1)s::INTEGER) + 1 AS anon_1
FROM erasures
WHERE erasures.tree_id = %(tree_id)s::BIGINT
