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
  undone.earlier_rewind,
  sessions.tree_id,
  sessions.id,
  sessions.head_branch,
  sessions.head,
  sessions.last_rewind,
  sessions.created_at,
  sessions.updated_at,
  sessions.forked_from,
  sessions.forked_at,
  sessions.fold_case,
  sessions.title,
  sessions.project_root,
  sessions.metadata,
  sessions.revision,
  sessions.owner,
  sessions.archived,
  sessions.sealed
FROM sessions
LEFT OUTER JOIN head_moves AS undone ON undone.tree_id = sessions.tree_id
  AND undone.session_id = sessions.id
  AND undone.move = sessions.last_rewind
WHERE sessions.tree_id = %(tree_id)s::BIGINT
  AND sessions.id = %(session_id)s::VARCHAR COLLATE "C"
