DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = %(tree_id)s::BIGINT
  AND draft_pieces.draft IN (
    SELECT drafts.draft
    FROM drafts
    WHERE drafts.tree_id = %(tree_id)s::BIGINT
      AND drafts.session_id = %(session_id)s::VARCHAR COLLATE "C"
  )
