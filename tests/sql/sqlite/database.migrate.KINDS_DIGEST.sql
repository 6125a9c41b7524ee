SELECT settings.value
FROM settings
WHERE settings.name = :name_1
