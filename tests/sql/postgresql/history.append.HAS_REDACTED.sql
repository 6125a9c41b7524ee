SELECT EXISTS (
  SELECT *
  FROM redactions
  WHERE redactions.tree_id = %(tree_id)s::BIGINT
) AS anon_1
