-- search.hits.LIST_TITLES
SELECT newest.id,
  newest.owner,
  newest.head_branch,
  newest.created_at,
  newest.title
FROM (
  SELECT sessions.id AS id,
    sessions.owner AS owner,
    sessions.head_branch AS head_branch,
    sessions.created_at AS created_at,
    sessions.title AS title
  FROM sessions
  WHERE sessions.archived = 0
  ORDER BY sessions.created_at DESC,
    sessions.id DESC
  LIMIT 5000
) AS newest
WHERE char_length(newest.title) != octet_length(newest.title)
  OR strpos(lower(newest.title), :first) > 0
ORDER BY newest.created_at DESC,
  newest.id DESC

-- search.hits.LIST_TITLES_OF_TREE
SELECT newest.id,
  newest.owner,
  newest.head_branch,
  newest.created_at,
  newest.title
FROM (
  SELECT sessions.id AS id,
    sessions.owner AS owner,
    sessions.head_branch AS head_branch,
    sessions.created_at AS created_at,
    sessions.title AS title
  FROM sessions
  WHERE sessions.archived = 0
    AND sessions.tree_id = :tree
  ORDER BY sessions.created_at DESC,
    sessions.id DESC
  LIMIT 5000
) AS newest
WHERE char_length(newest.title) != octet_length(newest.title)
  OR strpos(lower(newest.title), :first) > 0
ORDER BY newest.created_at DESC,
  newest.id DESC

-- search.hits.LIST_TITLES_OWNED
SELECT newest.id,
  newest.owner,
  newest.head_branch,
  newest.created_at,
  newest.title
FROM (
  SELECT sessions.id AS id,
    sessions.owner AS owner,
    sessions.head_branch AS head_branch,
    sessions.created_at AS created_at,
    sessions.title AS title
  FROM sessions
  WHERE sessions.archived = 0
    AND sessions.owner = :owner COLLATE "C"
  ORDER BY sessions.created_at DESC,
    sessions.id DESC
  LIMIT 5000
) AS newest
WHERE char_length(newest.title) != octet_length(newest.title)
  OR strpos(lower(newest.title), :first) > 0
ORDER BY newest.created_at DESC,
  newest.id DESC

-- search.index.DELETE_SETTING
DELETE FROM settings
WHERE settings.name = :setting COLLATE "C"

-- search.index.INSERT_SETTING
INSERT INTO settings (name, value)
VALUES (:of COLLATE "C", :to)

-- search.index_state.GET_SETTING
SELECT settings.value
FROM settings
WHERE settings.name = :setting COLLATE "C"

-- search.query.HAS_ROLE
SELECT message_facts.role
FROM message_facts
WHERE message_facts.role = :role
LIMIT 1

-- search.scope.TREE_BRANCHES
SELECT branches.tree_id,
  branches.branch,
  branches.parent_branch,
  branches.parent_position,
  branches.session_id,
  branches.records_seen
FROM branches
WHERE branches.tree_id IN (
  SELECT CAST(trees.value AS BIGINT) AS value
  FROM json_array_elements_text(CAST(:trees AS json)) AS trees
)

-- search.scope.TREE_SESSIONS
SELECT sessions.tree_id,
  sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.head
FROM sessions
WHERE sessions.tree_id IN (
  SELECT CAST(trees.value AS BIGINT) AS value
  FROM json_array_elements_text(CAST(:trees AS json)) AS trees
)
ORDER BY sessions.tree_id,
  sessions.id

