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
FROM session_keys AS first
JOIN sessions ON first.tree_id = sessions.tree_id
  AND first.session_id = sessions.id
  AND first.key = %(key1)s::VARCHAR COLLATE "C"
  AND first.value = %(value_of_key1)s::VARCHAR COLLATE "C"
WHERE sessions.archived + 0 = %(archived)s::INTEGER
  AND (
    EXISTS (
      SELECT *
      FROM session_keys AS of_key2
      WHERE of_key2.tree_id = sessions.tree_id
        AND of_key2.session_id = sessions.id
        AND of_key2.key = %(key2)s::VARCHAR COLLATE "C"
        AND of_key2.value = %(value_of_key2)s::VARCHAR COLLATE "C"
    )
  )
ORDER BY sessions.updated_at DESC,
  sessions.id DESC
LIMIT %(limit)s::BIGINT
