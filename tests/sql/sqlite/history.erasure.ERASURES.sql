SELECT erasures.session_id,
  CAST(sum(erasures.messages) AS INTEGER) AS removed,
  CAST(sum(erasures.kept_messages) AS INTEGER) AS kept,
  max(erasures.newest_copy) AS newest_copy,
  count(*) - count(erasures.finished_at) AS unfinished,
  count(*) - count(erasures.purged_at) AS unpurged
FROM erasures
GROUP BY erasures.tree_id,
  erasures.erasure,
  erasures.session_id
ORDER BY min(erasures.started_at),
  erasures.session_id
