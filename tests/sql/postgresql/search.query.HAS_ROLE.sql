SELECT message_facts.role
FROM message_facts
WHERE message_facts.role = %(role)s::VARCHAR
LIMIT 1
