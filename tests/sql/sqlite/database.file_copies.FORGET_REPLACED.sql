DELETE FROM copies
WHERE copies.path = :name
  AND copies.copy < :number
