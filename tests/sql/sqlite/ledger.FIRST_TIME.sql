SELECT messages.created_at 
FROM messages 
WHERE messages.tree_id = :tree_id AND messages.branch = :branch AND messages.seq BETWEEN :first AND :last AND messages.created_at IS NOT NULL ORDER BY messages.seq
 LIMIT 1 OFFSET :param_1
