SELECT branches.branch
FROM branches
WHERE branches.tree_id = %(tree_id)s::BIGINT
  AND (
    EXISTS (
      SELECT *
      FROM branches AS theirs,
        sessions
      WHERE theirs.tree_id = %(tree_id)s::BIGINT
        AND theirs.branch = branches.branch
        AND sessions.tree_id = theirs.tree_id
        AND sessions.id = theirs.session_id
        AND sessions.owner IS NOT DISTINCT FROM %(owner)s::VARCHAR COLLATE "C"
    )
  )
