SELECT COUNT(*)
FROM search_rows
