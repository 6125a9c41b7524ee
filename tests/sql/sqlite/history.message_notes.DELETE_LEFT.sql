DELETE FROM notes
WHERE notes.tree_id = :tree_id
  AND notes.session_id = :session_id
  AND NOT (
    EXISTS (
      SELECT *
      FROM sessions
      WHERE sessions.tree_id = :tree_id
        AND sessions.owner IS notes.owner
    )
  )
