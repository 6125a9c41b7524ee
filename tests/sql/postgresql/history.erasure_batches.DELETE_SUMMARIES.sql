DELETE FROM summaries
WHERE summaries.tree_id = %(tree_id)s::BIGINT
  AND summaries.summary IN (
    SELECT summaries.summary
    FROM summaries
    WHERE summaries.tree_id = %(tree_id)s::BIGINT
      AND summaries.branch = %(branch)s::BIGINT
      AND (
        summaries.summary NOT IN (
          SELECT compaction_records.summary
          FROM compaction_records
          WHERE compaction_records.tree_id = %(tree_id)s::BIGINT
            AND compaction_records.summary IS NOT NULL
        )
      )
    ORDER BY summaries.summary DESC
    LIMIT 8
  )
