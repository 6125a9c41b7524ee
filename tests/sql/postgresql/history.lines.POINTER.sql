SELECT sessions.tree_id,
  sessions.id,
  sessions.head_branch,
  sessions.head,
  branches.parent_position,
  sessions.last_rewind,
  sessions.project_root,
  sessions.fold_case,
  message_facts.turn,
  message_facts.tokens_through,
  sessions.revision,
  sessions.owner,
  4611686018427387904 AS newest
FROM session_ids
JOIN sessions ON sessions.tree_id = session_ids.tree_id
  AND sessions.id = session_ids.id
JOIN branches ON branches.tree_id = sessions.tree_id
  AND branches.branch = sessions.head_branch
LEFT OUTER JOIN message_facts ON message_facts.tree_id = sessions.tree_id
  AND message_facts.branch = sessions.head_branch
  AND message_facts.seq = sessions.head
WHERE session_ids.id = %(session_id)s::VARCHAR COLLATE "C"
