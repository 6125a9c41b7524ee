DELETE FROM drafts
WHERE drafts.tree_id = :tree_id
  AND drafts.draft = :draft
