UPDATE copies
SET size=%(bytes)s::BIGINT,
  modified=%(changed)s::BIGINT
WHERE copies.copy = %(number)s::BIGINT
