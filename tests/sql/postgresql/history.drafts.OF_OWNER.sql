SELECT drafts.tree_id,
  drafts.draft,
  drafts.session_id,
  drafts.branch,
  drafts.head,
  drafts.at,
  drafts.message,
  drafts.wire_format
FROM drafts
JOIN sessions ON sessions.tree_id = drafts.tree_id
  AND sessions.id = drafts.session_id
  AND sessions.owner = %(owner)s::VARCHAR COLLATE "C"
