SELECT (
  SELECT count(*) AS count_1
  FROM redactions
  WHERE redactions.tree_id = :tree_id
) AS redactions,
  coalesce(
    (
      SELECT max(erasures.erasure) AS max_1
      FROM erasures
      WHERE erasures.tree_id = :tree_id
    ),
    :coalesce_1
  ) AS erasures
