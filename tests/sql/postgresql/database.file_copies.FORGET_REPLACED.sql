DELETE FROM copies
WHERE copies.path = %(name)s::VARCHAR
  AND copies.copy < %(number)s::BIGINT
