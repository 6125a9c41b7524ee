DELETE FROM summaries WHERE summaries.tree_id = :tree_id AND summaries.branch = :branch AND summaries.last > :kept
