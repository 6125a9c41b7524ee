SELECT erasures.erasure,
  erasures.branch,
  erasures.kept,
  (
    SELECT max(messages.seq) AS max_1
    FROM messages
    WHERE messages.tree_id = :tree_id
      AND messages.branch = erasures.branch
  ) AS last,
  EXISTS (
    SELECT *
    FROM branches AS child
    WHERE child.tree_id = :tree_id
      AND child.parent_branch = erasures.branch
  ) AS is_needed
FROM erasures,
  branches
WHERE erasures.tree_id = :tree_id
  AND erasures.finished_at IS NULL
  AND branches.session_id IS NULL
  AND branches.tree_id = erasures.tree_id
  AND branches.branch = erasures.branch
ORDER BY erasures.erasure,
  erasures.branch DESC
LIMIT 1 OFFSET :param_1
