SELECT (
  SELECT max(messages.seq) AS max_1
  FROM messages
  WHERE messages.tree_id = :tree_id
    AND messages.branch = :branch
) AS anon_1,
  (
    SELECT min(erasures.kept) AS min_1
    FROM erasures
    WHERE erasures.tree_id = :tree_id
      AND erasures.branch = :branch
      AND erasures.finished_at IS NULL
  ) AS anon_2
