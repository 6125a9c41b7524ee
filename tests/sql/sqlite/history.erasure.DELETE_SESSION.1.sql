DELETE FROM draft_pieces
WHERE draft_pieces.tree_id = :tree_id
  AND draft_pieces.draft IN (
    SELECT drafts.draft
    FROM drafts
    WHERE drafts.tree_id = :tree_id
      AND drafts.session_id = :session_id
  )
