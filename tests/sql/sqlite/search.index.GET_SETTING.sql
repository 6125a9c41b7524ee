SELECT settings.value
FROM settings
WHERE settings.name = :setting
