SELECT message_facts.role
FROM message_facts
WHERE message_facts.role = :role
LIMIT 1 OFFSET :param_1
