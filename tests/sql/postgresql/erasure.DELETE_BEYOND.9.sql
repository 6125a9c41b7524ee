DELETE FROM summaries WHERE summaries.tree_id = %(tree_id)s::BIGINT AND summaries.branch = %(branch)s::BIGINT AND summaries.last > %(kept)s::BIGINT
