SELECT count(*) AS count_1
FROM sessions
WHERE sessions.archived = :archived
