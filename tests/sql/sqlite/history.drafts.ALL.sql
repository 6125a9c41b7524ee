SELECT drafts.tree_id,
  drafts.draft,
  drafts.session_id,
  drafts.branch,
  drafts.head,
  drafts.at,
  drafts.message,
  drafts.wire_format
FROM drafts
