-- database.migrate.SEED_DIGEST
SELECT settings.value
FROM settings
WHERE settings.name = :setting COLLATE "C"

