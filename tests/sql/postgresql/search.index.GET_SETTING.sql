SELECT settings.value
FROM settings
WHERE settings.name = %(setting)s::VARCHAR COLLATE "C"
