SELECT EXISTS (
  SELECT *
  FROM redactions
  WHERE redactions.tree_id = :tree_id
) AS anon_1
