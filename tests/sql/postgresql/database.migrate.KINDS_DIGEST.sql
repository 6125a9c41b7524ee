SELECT settings.value
FROM settings
WHERE settings.name = %(name_1)s::VARCHAR COLLATE "C"
