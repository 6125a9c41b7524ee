UPDATE drafts
SET at=%(now)s::BIGINT,
  message=%(given)s::VARCHAR
WHERE drafts.tree_id = %(tree)s::BIGINT
  AND drafts.draft = %(of)s::BIGINT
