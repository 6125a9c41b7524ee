UPDATE sessions
SET head_branch=:branch,
  head=:to,
  last_rewind=:rewind,
  updated_at=:now,
  revision=:revision
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
