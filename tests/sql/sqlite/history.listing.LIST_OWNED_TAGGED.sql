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
FROM sessions
WHERE sessions.archived = :archived
  AND sessions.owner = :owner
  AND (
    EXISTS (
      SELECT *
      FROM session_keys AS of_key1
      WHERE of_key1.tree_id = sessions.tree_id
        AND of_key1.session_id = sessions.id
        AND of_key1."key" = :key1
        AND of_key1.value = :value_of_key1
    )
  )
  AND (sessions.updated_at, sessions.id) < (:moment, :id)
ORDER BY sessions.updated_at DESC,
  sessions.id DESC
LIMIT :limit OFFSET :param_1
