SELECT sessions.id AS session_id,
  usages.branch AS branch,
  usages.seq AS seq,
  usages.model AS model,
  usages.provider AS provider,
  usages.input AS input,
  usages.output AS output,
  usages.cached AS cached,
  coalesce(usages.written, 0) AS written,
  usages.cost AS cost,
  usages.details AS details,
  usages.at AS at,
  usages.usage %% 4294967296 AS number
FROM usages
JOIN branches ON branches.tree_id = usages.tree_id
  AND branches.branch = usages.branch
JOIN sessions ON sessions.tree_id = branches.tree_id
  AND sessions.id = branches.session_id
WHERE usages.at >= %(since)s::BIGINT
  AND usages.at < %(until)s::BIGINT
  AND usages.at >= %(seen_at)s::BIGINT
  AND (
    usages.at,
    sessions.id,
    usages.branch,
    usages.seq,
    usages.usage %% 4294967296
  ) > (
    %(seen_at)s::BIGINT,
    %(seen_session_id)s::VARCHAR COLLATE "C",
    %(seen_branch)s::BIGINT,
    %(seen_seq)s::BIGINT,
    %(seen_number)s::BIGINT
  )
ORDER BY usages.at,
  sessions.id,
  usages.branch,
  usages.seq,
  usages.usage %% 4294967296
LIMIT %(limit)s::BIGINT
