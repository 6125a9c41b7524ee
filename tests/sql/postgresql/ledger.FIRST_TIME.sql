SELECT messages.created_at 
FROM messages 
WHERE messages.tree_id = %(tree_id)s::BIGINT AND messages.branch = %(branch)s::BIGINT AND messages.seq BETWEEN %(first)s::BIGINT AND %(last)s::BIGINT AND messages.created_at IS NOT NULL ORDER BY messages.seq 
 LIMIT 1
