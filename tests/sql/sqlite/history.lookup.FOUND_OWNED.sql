WITH RECURSIVE through(tree_id, branch, seq, holder) AS (
  SELECT messages.tree_id AS tree_id,
    messages.branch AS branch,
    messages.seq AS seq,
    messages.branch AS holder
  FROM messages
  WHERE messages.message_id IN (:message_id, :neutral_id)
  UNION ALL
  SELECT branches.tree_id AS tree_id,
    branches.branch AS branch,
    through.seq AS seq,
    through.holder AS holder
  FROM branches
  JOIN through ON branches.tree_id = through.tree_id
    AND branches.parent_branch = through.branch
    AND branches.parent_position >= through.seq
)
SELECT sessions.id AS session_id,
  coalesce(
    max(
      CASE
        WHEN (own.branch = sessions.head_branch) THEN own.branch
      END
    ),
    max(own.branch)
  ) AS branch,
  through.seq
FROM through
JOIN branches AS own ON own.tree_id = through.tree_id
  AND own.branch = through.branch
JOIN sessions ON sessions.tree_id = own.tree_id
  AND sessions.id = own.session_id
WHERE sessions.owner = :owner
GROUP BY sessions.id,
  sessions.updated_at,
  through.holder,
  through.seq
ORDER BY sessions.updated_at DESC,
  sessions.id DESC,
  through.seq DESC
