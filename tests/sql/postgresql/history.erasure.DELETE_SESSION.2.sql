DELETE FROM drafts
WHERE drafts.tree_id = %(tree_id)s::BIGINT
  AND drafts.session_id = %(session_id)s::VARCHAR COLLATE "C"
