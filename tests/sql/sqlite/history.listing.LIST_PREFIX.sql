SELECT sessions.id AS id,
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
FROM session_ids
JOIN sessions ON sessions.tree_id = session_ids.tree_id
  AND sessions.id = session_ids.id
WHERE session_ids.id >= :prefix
  AND session_ids.id < :end
  AND sessions.archived + 0 = :archived
ORDER BY sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1
