INSERT INTO settings (name, value)
VALUES (%(of)s::VARCHAR COLLATE "C", %(to)s::VARCHAR)
