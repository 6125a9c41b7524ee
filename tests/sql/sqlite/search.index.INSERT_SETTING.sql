INSERT INTO settings (name, value)
VALUES (:of, :to)
