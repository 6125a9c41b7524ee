SELECT erasures.session_id,
  CAST(sum(erasures.messages) AS INTEGER) AS removed,
  CAST(sum(erasures.kept_messages) AS INTEGER) AS kept,
  min(erasures.purged_at) AS purged_at,
  max(erasures.newest_copy) AS newest_copy
FROM erasures
GROUP BY erasures.tree_id,
  erasures.erasure,
  erasures.session_id
ORDER BY min(erasures.finished_at),
  erasures.session_id
