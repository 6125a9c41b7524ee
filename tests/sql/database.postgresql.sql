-- database.migrate.KINDS_DIGEST
SELECT settings.value
FROM settings
WHERE settings.name = :name_1 COLLATE "C"

