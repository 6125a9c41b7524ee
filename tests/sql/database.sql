-- database.file_copies.COPIES
SELECT copies.copy,
  copies.made_at,
  copies.size,
  copies.modified,
  copies.kind,
  copies.path
FROM copies
ORDER BY copies.copy

-- database.file_copies.DELETE_COPY
DELETE FROM copies
WHERE copies.copy = :number

-- database.file_copies.DELETE_REPLACED_COPIES
DELETE FROM copies
WHERE copies.path = :name
  AND copies.copy < :number

-- database.file_copies.FINISH_COPY
UPDATE copies
SET size=:bytes,
  modified=:changed
WHERE copies.copy = :number

-- database.file_copies.INSERT_COPY
INSERT INTO copies (copy, made_at, size, modified, kind, path, sealed)
VALUES (:copy, :made_at, :size, :modified, :kind, :path, :sealed)

-- database.file_copies.NEXT_COPY
SELECT coalesce(max(anon_2.number), :coalesce_1) + 1 AS anon_1
FROM (
  SELECT max(copies.copy) AS number
  FROM copies
  UNION ALL
  SELECT max(erasures.newest_copy) AS max_1
  FROM erasures
) AS anon_2

-- database.migrate.SCHEMA_VERSION
SELECT version_num
FROM alembic_version

-- database.migrate.SEED_DIGEST
SELECT settings.value
FROM settings
WHERE settings.name = :setting

-- database.storage_sizes.SQLITE_MODULE
SELECT 1
FROM pragma_module_list
WHERE name = 'dbstat'

