SELECT b.tree_id,
  b.branch,
  b.parent_position,
  b.session_id,
  CASE
    WHEN b.session_id IS NULL THEN (
      SELECT kept
      FROM erasures e
      WHERE e.tree_id = :tree_id
        AND e.branch = b.branch
      ORDER BY erasure DESC
      LIMIT 1
    )
    WHEN s.head_branch = b.branch THEN s.head
    ELSE (
      SELECT MAX(m.from_position)
      FROM head_moves m
      WHERE m.tree_id = :tree_id
        AND m.session_id = b.session_id
        AND m.from_branch = b.branch
        AND m.kind <> 'fork'
    )
  END,
  EXISTS (
    SELECT 1
    FROM erasures e
    WHERE e.tree_id = :tree_id
      AND e.branch = b.branch
      AND e.finished_at IS NULL
  ),
  CASE
    WHEN s.id IS NULL THEN o.project_root
    ELSE s.project_root
  END,
  o.fold_case
FROM branches b
LEFT JOIN sessions s ON s.tree_id = :tree_id
  AND s.id = b.session_id
LEFT JOIN sessions o ON o.tree_id = :tree_id
  AND o.id = (
    SELECT MIN(id)
    FROM sessions
    WHERE tree_id = :tree_id
  )
WHERE b.tree_id = :tree_id
  AND b.branch = :branch
