SELECT (
  SELECT max(branches.branch) AS max_1
  FROM branches
  WHERE branches.tree_id = :tree_id
) + 1 AS branch,
  coalesce(
    (
      SELECT max(head_moves.move) AS max_2
      FROM head_moves
      WHERE head_moves.tree_id = :tree_id
        AND head_moves.session_id = :session_id
    ),
    0
  ) + 1 AS move,
  coalesce(
    (
      SELECT max(compaction_records.compaction) AS max_3
      FROM compaction_records
      WHERE compaction_records.tree_id = :tree_id
    ),
    0
  ) AS record,
  undone.from_branch,
  undone.from_position,
  undone.earlier_rewind
FROM head_moves AS undone
WHERE undone.tree_id = :tree_id
  AND undone.session_id = :session_id
  AND undone.move = :move
