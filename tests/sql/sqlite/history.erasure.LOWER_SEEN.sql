UPDATE branches
SET records_seen=:newest
WHERE branches.tree_id = :tree
  AND branches.records_seen > :newest
