SELECT coalesce(max(copies.copy), %(coalesce_2)s::INTEGER) AS coalesce_1
FROM copies
