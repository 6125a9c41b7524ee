UPDATE sessions
SET metadata=%(metadata)s::VARCHAR,
  revision=%(revision)s::VARCHAR
WHERE sessions.tree_id = %(tree)s::BIGINT
  AND sessions.id = %(session_id)s::VARCHAR COLLATE "C"
RETURNING sessions.id AS id,
  sessions.title AS title,
  sessions.head AS head,
  sessions.project_root AS project_root,
  sessions.metadata AS metadata,
  sessions.created_at AS created_at,
  sessions.updated_at AS updated_at,
  sessions.forked_from AS forked_from,
  sessions.forked_at AS forked_at,
  sessions.head_branch AS branch,
  sessions.revision AS revision,
  sessions.owner AS owner,
  sessions.archived AS archived
