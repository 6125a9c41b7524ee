DELETE FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.session_id = :session_id
