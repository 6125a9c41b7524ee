SELECT coalesce(max(copies.copy), :coalesce_2) AS coalesce_1
FROM copies
