-- search.hidden_passages.LINE_ROLES
SELECT message_facts.seq,
  message_facts.role
FROM message_facts
WHERE message_facts.tree_id = :tree_id
  AND message_facts.branch = :branch
  AND message_facts.seq BETWEEN :first AND :last
ORDER BY message_facts.seq

-- search.hits.LIST_TITLES
SELECT sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.created_at,
  sessions.title
FROM sessions
WHERE sessions.archived = 0
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT 5000 OFFSET :param_1

-- search.hits.LIST_TITLES_OF_TREE
SELECT sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.created_at,
  sessions.title
FROM sessions
WHERE sessions.archived = 0
  AND sessions.tree_id = :tree
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT 5000 OFFSET :param_1

-- search.hits.LIST_TITLES_OWNED
SELECT sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.created_at,
  sessions.title
FROM sessions
WHERE sessions.archived = 0
  AND sessions.owner = :owner
ORDER BY sessions.created_at DESC,
  sessions.id DESC
LIMIT 5000 OFFSET :param_1

-- search.index.COUNT_DOCUMENTS
SELECT (
  SELECT COUNT(*)
  FROM messages
) + (
  SELECT COUNT(*)
  FROM summaries
)

-- search.index.COUNT_ENTRIES
SELECT COUNT(*)
FROM search_rows

-- search.index.DELETE_ENTRIES
DELETE FROM search_rows

-- search.index.DELETE_SETTING
DELETE FROM settings
WHERE settings.name = :setting

-- search.index.INSERT_ENTRY_PLACES
INSERT INTO search_rows (tree_id, branch, seq, summary, number)
VALUES (:tree_id, :branch, :seq, :summary, :number)

-- search.index.INSERT_SETTING
INSERT INTO settings (name, value)
VALUES (:of, :to)

-- search.index.SET_SETTING
INSERT INTO settings (name, value)
VALUES (:of, :to) ON CONFLICT (name) DO UPDATE
SET value = excluded.value

-- search.index_state.GET_SETTING
SELECT settings.value
FROM settings
WHERE settings.name = :setting

-- search.query.HAS_ROLE
SELECT message_facts.role
FROM message_facts
WHERE message_facts.role = :role
LIMIT 1 OFFSET :param_1

-- search.scope.TREE_BRANCHES
SELECT branches.tree_id,
  branches.branch,
  branches.parent_branch,
  branches.parent_position,
  branches.session_id,
  branches.records_seen
FROM branches
WHERE branches.tree_id IN (
  SELECT CAST(trees.value AS INTEGER) AS value
  FROM json_each(:trees) AS trees
)

-- search.scope.TREE_SESSIONS
SELECT sessions.tree_id,
  sessions.id,
  sessions.owner,
  sessions.head_branch,
  sessions.head
FROM sessions
WHERE sessions.tree_id IN (
  SELECT CAST(trees.value AS INTEGER) AS value
  FROM json_each(:trees) AS trees
)
ORDER BY sessions.tree_id,
  sessions.id

