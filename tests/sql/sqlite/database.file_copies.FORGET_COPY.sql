DELETE FROM copies
WHERE copies.copy = :number
