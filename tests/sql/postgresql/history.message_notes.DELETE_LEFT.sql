DELETE FROM notes
WHERE notes.tree_id = %(tree_id)s::BIGINT
  AND notes.session_id = %(session_id)s::VARCHAR COLLATE "C"
  AND NOT (
    EXISTS (
      SELECT *
      FROM sessions
      WHERE sessions.tree_id = %(tree_id)s::BIGINT
        AND sessions.owner IS NOT DISTINCT FROM notes.owner
    )
  )
