UPDATE sessions
SET head_branch=:branch,
  head=:to,
  last_rewind=:rewind,
  updated_at=:now,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
RETURNING id AS id,
  title AS title,
  head AS head,
  project_root AS project_root,
  metadata AS metadata,
  created_at AS created_at,
  updated_at AS updated_at,
  forked_from AS forked_from,
  forked_at AS forked_at,
  head_branch AS branch,
  revision AS revision,
  owner AS owner,
  archived AS archived
