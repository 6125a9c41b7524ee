-- How the rules of a view judge tool results. One text for SQLite and PostgreSQL.
--
-- A part is a piece that other texts name in braces. A condition tells of a result, by its
-- columns in the step `told`, whether it is judged so; the table in rules.py says in which order
-- they are asked, and the first that holds is the verdict. A query is a statement.
--
-- Values: all whole numbers, switches 0 or 1, but :kinds, a JSON object of names of tools and
-- their kinds, which {pairs:kinds} reads as rows.

-- part: looked_at
-- Of a first view these are all runs that it shows. A later one looks at what is new and at what is
-- not settled: where a result has lost its place to enough newer ones, no later one gives it back.
segments AS MATERIALIZED (  -- the runs of branches whose results are ranked and judged
    {runs:runs}
)

-- part: columns
tool_results.branch, tool_results.seq, tool_results.call_seq, tool_results.call_position,
        tool_results.tool_name, {moment} AS at, tool_results.length, tool_results.size,
        tool_results.paths_complete, tool_results.status, tool_results.exit_code,
        tool_results.has_stderr, tool_results.error_prefix

-- part: moment
-- When a result was said; of one that does not tell, when it was stored, if the policy says so.
COALESCE(
            tool_results.at,
            CASE WHEN :by_stored_at = 1 THEN (
                SELECT messages.stored_at
                FROM messages
                WHERE messages.tree_id = :tree_id
                    AND messages.branch = tool_results.branch
                    AND messages.seq = tool_results.seq
            ) END
        )

-- part: on_line
tool_results.tree_id = :tree_id
        AND tool_results.branch = segments.branch
        AND tool_results.seq BETWEEN segments.first AND segments.last

-- part: shown
tool_results.call_seq >= :start OR :adopt = 1

-- part: is_redacted
-- Nothing of it is left to be seen: the row of a message whose words were taken out, as redact
-- leaves it and as an import brings it in.
CASE
            WHEN tool_results.length = 10 AND EXISTS (
                SELECT messages.seq
                FROM messages
                WHERE messages.tree_id = :tree_id
                    AND messages.branch = tool_results.branch
                    AND messages.seq = tool_results.seq
                    AND messages.content = '[redacted]'
                    AND messages.extra LIKE '%"redacted"_true%'
            ) THEN 1
            ELSE 0
        END

-- part: by_looks
-- What tells a command's output by its looks: the policy, or that no name is known.
:sniff = 1 OR COALESCE(tool_results.tool_name, '') = ''

-- part: named
-- The kinds are read once and not for each result: to parse JSON is dear.
overrides AS MATERIALIZED (  -- the kinds that the policy gives tools; the table's stand behind them
    SELECT pairs.key AS name, pairs.value AS kind FROM {pairs:kinds} AS pairs
),
named AS NOT MATERIALIZED (  -- the tool results of these runs, with the kinds of their tools
    SELECT {columns},
        COALESCE(overrides.kind, tool_kinds.kind) AS kind,
        CASE
            WHEN {by_looks} THEN tool_results.looks_terminal
            WHEN COALESCE(overrides.kind, tool_kinds.kind) = 'terminal' THEN 1
            ELSE 0
        END AS is_terminal,
        CASE WHEN COALESCE(overrides.kind, tool_kinds.kind) = 'file_read' THEN 1 ELSE 0 END AS reads,
        {is_redacted} AS is_redacted
    FROM segments
    CROSS JOIN tool_results
    LEFT JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
    LEFT JOIN overrides ON overrides.name = tool_results.tool_name
    WHERE {on_line} AND ({shown})
)

-- part: judged
-- The signs of a failure are those of tools/failure.py.
judged AS (  -- what is said of each by itself: whether it is a read, an error, or still running
    SELECT branch, seq, call_seq, call_position, tool_name, kind, at, length, size, paths_complete,
        is_terminal, is_redacted,
        CASE WHEN reads = 1 AND seq < :judged_before THEN 1 ELSE 0 END AS is_read,
        CASE
            WHEN {any_sign} THEN 1
            WHEN {command_sign} AND is_terminal = 1 THEN 1
            ELSE 0
        END AS is_error,
        CASE WHEN status = 'pending' THEN 1 ELSE 0 END AS is_pending
    FROM named
)

-- part: takes_slot
-- It counts among the newest results of any tool.
at IS NOT NULL AND is_redacted = 0 AND seq < :judged_before
        AND (is_error = 0 OR :errors_take_slots = 1)

-- part: counts_as_read
-- It counts among the reads of its files.
is_read = 1 AND is_redacted = 0 AND is_error = 0 AND is_pending = 0 AND at IS NOT NULL

-- part: nth_of_files
-- The rank of a read of several files: by the file that keeps it longest, or shortest.
CASE WHEN :batch_any = 1 THEN MAX(nth) ELSE MIN(nth) END

-- part: ripe
-- Any rule may replace it: it is finished, dated, no error and not protected.
is_error = 0 AND is_pending = 0 AND at IS NOT NULL AND seq < :protected_from

-- part: is_output
:terminal = 1 AND is_terminal = 1

-- part: is_stale
nth_read > :file_read_keep AND (:batch_any = 1 OR paths_complete = 1)

-- part: points_to_cleared
-- Of its file a read that would have to be seen is cleared as a result of any tool.
:any_tool = 1 AND oldest_kept < :clear_before AND oldest_kept < :protected_from

-- part: is_pointed_to
-- The placeholder of older reads of its file says that this one is to be seen.
nth <= :file_read_keep AND farthest > :file_read_keep

-- condition: redacted
is_redacted = 1

-- condition: terminal
{is_output} AND {ripe} AND is_newest = 0 AND at < :terminal_before AND length > 0
        AND (:min_saving = 0 OR length - :terminal_placeholder >= :min_saving)

-- condition: file_read
:file_read = 1 AND {counts_as_read} AND seq < :protected_from AND {is_stale}
        AND (:min_saving = 0 OR length - :file_read_placeholder >= :min_saving)
        AND points_to_cleared = 0

-- condition: any_tool
:any_tool = 1 AND is_error = 0 AND is_pending = 0
        AND seq < :clear_before AND seq < :protected_from

-- condition: tool_output
:tool_output = 1 AND seq < :running_from AND is_pending = 0
        AND (is_error = 0 OR is_terminal = 1 OR :errors_stay = 0)
        AND COALESCE(is_pointed_to, 0) = 0

-- condition: error
is_error = 1

-- condition: pending
is_pending = 1

-- condition: recent
:any_tool = 1 AND seq >= :clear_before

-- condition: undated
at IS NULL

-- condition: current_turn
seq >= :protected_from

-- condition: newest
{is_output} AND is_newest = 1

-- condition: young
{terminal_young}

-- condition: small
({is_output}) OR (:file_read = 1 AND is_read = 1 AND {is_stale})

-- condition: no_path
:file_read = 1 AND is_read = 1 AND nth_read IS NULL

-- condition: newest_reads
:file_read = 1 AND is_read = 1

-- part: ranked
-- The one ranking, of every view and of the statement that a shell runs. In the step `files`,
-- `newer` is the number of newer reads of the file that has fewest: a later read may make it stale,
-- and the newest one that is stale tells that the file has such.
{looked_at},
{named},
{judged},
slots AS (  -- those that count among the newest results of any tool, with their rank
    SELECT seq, ROW_NUMBER() OVER (ORDER BY at DESC, seq DESC) AS nth
    FROM judged
    WHERE :terminal = 1 AND {takes_slot}
),
newest AS MATERIALIZED (  -- as many of these as stay
    SELECT seq FROM slots WHERE nth <= :terminal_keep
),
reads AS (  -- each successful read of each file
    SELECT judged.seq, at, path, CASE WHEN :dedupe = 1 THEN 1 ELSE mentions END AS mentions
    FROM judged
    JOIN tool_result_paths
        ON tool_result_paths.tree_id = :tree_id
        AND tool_result_paths.branch = judged.branch
        AND tool_result_paths.seq = judged.seq
    WHERE :file_read = 1 AND {counts_as_read}
),
counted AS (  -- the same, with its rank among the reads of that file
    SELECT seq, path, mentions,
        SUM(mentions) OVER (
            PARTITION BY path ORDER BY at DESC, seq DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS nth
    FROM reads
),
compared AS (  -- and with the highest rank of that file, and its oldest read that is kept
    SELECT seq, mentions, nth,
        MAX(nth) OVER (PARTITION BY path) AS farthest,
        MIN(CASE WHEN nth <= :file_read_keep THEN seq END) OVER (PARTITION BY path) AS oldest_kept
    FROM counted
),
files AS (  -- each read with its rank by the file that counts: the one that keeps it, or any
    SELECT seq, {nth_of_files} AS nth, MIN(nth - mentions) AS newer,
        MAX(CASE WHEN {is_pointed_to} THEN 1 ELSE 0 END) AS is_pointed_to,
        MAX(CASE WHEN {points_to_cleared} THEN 1 ELSE 0 END) AS points_to_cleared
    FROM compared
    GROUP BY seq
),
told AS (  -- everything that the conditions of the rules ask for
    SELECT judged.*, files.nth AS nth_read, files.newer, files.is_pointed_to,
        files.points_to_cleared,
        CASE
            WHEN judged.seq IN (SELECT seq FROM newest) THEN 1
            ELSE 0
        END AS is_newest
    FROM judged
    LEFT JOIN files ON files.seq = judged.seq
)

-- part: terminal_young
-- Time may make it old output. A rule with an age has such a part, and all of them are {is_young}.
{is_output} AND at >= :terminal_before

-- query: verdicts
-- What is said of each tool result that is looked at, and why.
WITH {ranked}
SELECT seq, call_seq, call_position,
    CASE
        {first_that_holds}
        ELSE 'other'
    END AS why,
    length, size, tool_name, kind, branch, is_error,
    is_newest,
    CASE WHEN newer <= :file_read_keep THEN 1 ELSE 0 END AS is_among_reads,
    CASE WHEN {is_young} THEN at END AS young_at
FROM told
ORDER BY seq

-- query: sent
-- Each message of a line, what is said of it, and what is sent of it where SQL can tell.
WITH {ranked},
verdicts AS (
    SELECT seq,
        CASE
            {first_that_holds}
            ELSE 'other'
        END AS why
    FROM told
),
line AS (
    {runs:line}
),
shown AS (
    {runs:shown}
),
decided AS MATERIALIZED (  -- what Python has the last word of
    SELECT CAST(pairs.key AS BIGINT) AS seq, NULLIF(pairs.value, '') AS rule
    FROM {pairs:rules} AS pairs
),
explained AS MATERIALIZED (
    SELECT CAST(pairs.key AS BIGINT) AS seq, pairs.value AS why FROM {pairs:whys} AS pairs
),
written AS MATERIALIZED (
    SELECT CAST(pairs.key AS BIGINT) AS seq FROM {pairs:written} AS pairs
),
reasons AS MATERIALIZED (
    SELECT pairs.key AS why, pairs.value AS reason FROM {pairs:reasons} AS pairs
),
said AS (
    SELECT line.branch, messages.seq, messages.role, messages.content, shown.branch AS shown_in,
        CASE  -- texts that no column takes stand in others, which no JSON begins like
            WHEN written.seq IS NOT NULL OR content_form = 'attached' THEN 1
            WHEN content_form = 'json' AND content LIKE '=%' THEN 1
            ELSE 0
        END AS is_written,
        CASE
            WHEN shown.branch IS NULL THEN 'hidden'
            WHEN decided.seq IS NOT NULL THEN decided.rule
            WHEN verdicts.why IN ({names_of_rules}) THEN verdicts.why
        END AS rule,
        COALESCE(explained.why, verdicts.why) AS why
    FROM line
    CROSS JOIN messages
    LEFT JOIN shown
        ON shown.branch = messages.branch AND messages.seq BETWEEN shown.first AND shown.last
    LEFT JOIN decided ON decided.seq = messages.seq
    LEFT JOIN explained ON explained.seq = messages.seq
    LEFT JOIN verdicts ON verdicts.seq = messages.seq
    LEFT JOIN written ON written.seq = messages.seq
    WHERE messages.tree_id = :tree_id
        AND messages.branch = line.branch
        AND messages.seq BETWEEN line.first AND line.last
),
paths AS (
    SELECT said.seq, (
            SELECT {list:path}
            FROM (
                SELECT path
                FROM tool_result_paths
                WHERE tool_result_paths.tree_id = :tree_id
                    AND tool_result_paths.branch = said.branch
                    AND tool_result_paths.seq = said.seq
                ORDER BY path
            ) AS of_result
        ) AS listed
    FROM said
    WHERE rule = 'file_read'
)
SELECT said.seq AS position, role, rule,
    CASE
        WHEN shown_in IS NULL THEN ''
        ELSE COALESCE(reasons.reason, said.why, '') || COALESCE(
            CASE
                WHEN LENGTH(listed) > :files_limit
                    THEN ': ' || SUBSTR(listed, 1, :files_limit - 1) || '…'
                ELSE ': ' || listed
            END,
            ''
        )
    END AS reason,
    CASE
        {whole_text}
        WHEN rule IS NULL AND is_written = 0 THEN content
    END AS content,
    CASE
        WHEN rule IN ({names_of_whole}, 'hidden') THEN 'sql'
        WHEN rule IS NULL AND is_written = 0 THEN 'sql'
        ELSE 'python'
    END AS made_by
FROM said
LEFT JOIN reasons ON reasons.why = said.why
LEFT JOIN paths ON paths.seq = said.seq
ORDER BY said.seq

-- query: covered
-- The files and lines that were read, the newest reads first; a read of no known file is there too.
WITH {looked_at},
{named},
{judged}
SELECT judged.seq, path, start_line, end_line, contiguous
FROM judged
LEFT JOIN tool_result_paths
    ON tool_result_paths.tree_id = :tree_id
    AND tool_result_paths.branch = judged.branch
    AND tool_result_paths.seq = judged.seq
WHERE {counts_as_read}
ORDER BY at DESC, judged.seq DESC

-- query: clearable
-- The newest result of any tool that is not among the :clear_keep newest; no older one is either.
WITH {looked_at},
newest_first AS (
    SELECT tool_results.seq, ROW_NUMBER() OVER (ORDER BY tool_results.seq DESC) AS nth
    FROM segments
    CROSS JOIN tool_results
    WHERE {on_line} AND ({shown}) AND tool_results.seq < :judged_before
        AND {is_redacted} = 0
)
SELECT seq FROM newest_first WHERE nth = :clear_keep + 1
