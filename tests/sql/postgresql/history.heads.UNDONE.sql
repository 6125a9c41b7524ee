SELECT (
  SELECT max(branches.branch) AS max_1
  FROM branches
  WHERE branches.tree_id = %(tree_id)s::BIGINT
) + 1 AS branch,
  coalesce(
    (
      SELECT max(head_moves.move) AS max_2
      FROM head_moves
      WHERE head_moves.tree_id = %(tree_id)s::BIGINT
        AND head_moves.session_id = %(session_id)s::VARCHAR COLLATE "C"
    ),
    0
  ) + 1 AS move,
  coalesce(
    (
      SELECT max(compaction_records.compaction) AS max_3
      FROM compaction_records
      WHERE compaction_records.tree_id = %(tree_id)s::BIGINT
    ),
    0
  ) AS record,
  undone.from_branch,
  undone.from_position,
  undone.earlier_rewind
FROM head_moves AS undone
WHERE undone.tree_id = %(tree_id)s::BIGINT
  AND undone.session_id = %(session_id)s::VARCHAR COLLATE "C"
  AND undone.move = %(move)s::BIGINT
