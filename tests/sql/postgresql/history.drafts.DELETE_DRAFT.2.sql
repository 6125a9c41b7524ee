DELETE FROM drafts
WHERE drafts.tree_id = %(tree_id)s::BIGINT
  AND drafts.draft = %(draft)s::BIGINT
