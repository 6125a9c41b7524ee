UPDATE sessions
SET revision=:revision,
  archived=:archived
WHERE sessions.tree_id = :tree
  AND sessions.id = :session_id
