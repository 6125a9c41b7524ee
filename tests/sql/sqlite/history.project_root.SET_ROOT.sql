UPDATE sessions
SET project_root=:root,
  revision=:revision
WHERE sessions.tree_id = :tree
