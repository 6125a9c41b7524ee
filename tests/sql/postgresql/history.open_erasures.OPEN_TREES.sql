SELECT DISTINCT erasures.tree_id
FROM erasures,
  branches
WHERE erasures.finished_at IS NULL
  AND branches.session_id IS NULL
  AND branches.tree_id = erasures.tree_id
  AND branches.branch = erasures.branch
