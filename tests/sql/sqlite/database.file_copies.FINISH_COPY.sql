UPDATE copies
SET size=:bytes,
  modified=:changed
WHERE copies.copy = :number
