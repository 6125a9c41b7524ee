UPDATE drafts
SET at=:now,
  message=:given
WHERE drafts.tree_id = :tree
  AND drafts.draft = :of
