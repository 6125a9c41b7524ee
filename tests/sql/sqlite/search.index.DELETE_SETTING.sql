DELETE FROM settings
WHERE settings.name = :setting
