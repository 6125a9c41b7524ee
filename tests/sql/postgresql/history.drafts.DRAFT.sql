SELECT drafts.tree_id,
  drafts.draft,
  drafts.session_id,
  drafts.branch,
  drafts.head,
  drafts.at,
  drafts.message,
  drafts.wire_format
FROM drafts
WHERE drafts.tree_id = %(tree_id)s::BIGINT
  AND drafts.draft = %(draft)s::BIGINT
