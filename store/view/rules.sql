-- How the rules of a view judge tool results. One text for SQLite and PostgreSQL.
--
-- A part is a piece that other texts name in braces. A condition tells of a result, by its
-- columns in the step `told`, whether it is judged so; the table in rules.py says in which order
-- they are asked, and the first that holds is the verdict. A query is a statement.
--
-- Values: all whole numbers, switches 0 or 1, but :kinds, a JSON object of names of tools and
-- their kinds, which {pairs:kinds} reads as rows.

-- part: line
-- The runs of branches that hold the positions :start to :last of a line, from its head upwards.
walk(branch, parent_branch, first, last) AS (
    SELECT branch, parent_branch, parent_position + 1, :last
    FROM branches
    WHERE tree_id = :tree_id AND branch = :branch
    UNION ALL
    SELECT parents.branch, parents.parent_branch, parents.parent_position + 1,
        CASE WHEN walk.first <= :last THEN walk.first - 1 ELSE :last END
    FROM branches AS parents
    JOIN walk ON parents.branch = walk.parent_branch
    WHERE parents.tree_id = :tree_id AND walk.first > :start
),
segments AS (
    SELECT branch, CASE WHEN first < :start THEN :start ELSE first END AS first, last
    FROM walk
    WHERE CASE WHEN first < :start THEN :start ELSE first END <= last
)

-- part: run
-- The same where one branch holds them all.
segments AS (
    SELECT CAST(:branch AS BIGINT) AS branch, CAST(:begin AS BIGINT) AS first,
        CAST(:last AS BIGINT) AS last
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
tool_results.seq >= :start AND (tool_results.call_seq >= :start OR :adopt = 1)

-- part: by_looks
-- What tells a command's output by its looks: the policy, or that no name is known.
:sniff = 1 OR COALESCE(tool_results.tool_name, '') = ''

-- part: named
-- Each result that the view shows, with the kind of its tool; a policy's own kinds come first.
overrides AS MATERIALIZED (  -- once and not for each result: to parse JSON is dear
    SELECT pairs.key AS name, pairs.value AS kind FROM {pairs:kinds} AS pairs
),
named AS NOT MATERIALIZED (
    SELECT {columns},
        COALESCE(overrides.kind, tool_kinds.kind) AS kind,
        CASE
            WHEN {by_looks} THEN tool_results.looks_terminal
            WHEN COALESCE(overrides.kind, tool_kinds.kind) = 'terminal' THEN 1
            ELSE 0
        END AS is_terminal,
        CASE WHEN COALESCE(overrides.kind, tool_kinds.kind) = 'file_read' THEN 1 ELSE 0 END AS reads
    FROM segments
    JOIN tool_results ON {on_line}
    LEFT JOIN tool_kinds ON tool_kinds.name = tool_results.tool_name
    LEFT JOIN overrides ON overrides.name = tool_results.tool_name
    WHERE {shown}
)

-- part: named_lean
-- The same where only the kinds count that rules are about: a list of names is less than a join.
named AS NOT MATERIALIZED (
    SELECT {columns},
        CASE
            WHEN {by_looks} THEN tool_results.looks_terminal
            WHEN tool_results.tool_name IN ({names:terminal}) THEN 1
            ELSE 0
        END AS is_terminal,
        CASE WHEN tool_results.tool_name IN ({names:file_read}) THEN 1 ELSE 0 END AS reads
    FROM segments
    JOIN tool_results ON {on_line}
    WHERE {shown}
)

-- part: names
-- The names of the tools of a kind.
SELECT name FROM tool_kinds
                WHERE kind = '{it}'
                    AND name NOT IN (SELECT pairs.key FROM {pairs:kinds} AS pairs)
                UNION ALL
                SELECT pairs.key FROM {pairs:kinds} AS pairs WHERE pairs.value = '{it}'

-- part: said
-- What is said of each result by itself. The signs of a failure are those of tools/failure.py.
is_terminal,
        CASE WHEN reads = 1 AND seq < :judged_before THEN 1 ELSE 0 END AS is_read,
        CASE
            WHEN {any_sign} THEN 1
            WHEN {command_sign} AND is_terminal = 1 THEN 1
            ELSE 0
        END AS is_error,
        CASE WHEN status = 'pending' THEN 1 ELSE 0 END AS is_pending

-- part: judged
judged AS (
    SELECT branch, seq, call_seq, call_position, tool_name, kind, at, length, size, paths_complete,
        {said}
    FROM named
)

-- part: judged_lean
judged AS (
    SELECT branch, seq, tool_name, at, length, size, paths_complete,
        {said}
    FROM named
)

-- part: takes_slot
-- It counts among the newest results of any tool.
at IS NOT NULL AND seq < :judged_before AND (is_error = 0 OR :errors_take_slots = 1)

-- part: counts_as_read
-- It counts among the reads of its files.
is_read = 1 AND is_error = 0 AND is_pending = 0 AND at IS NOT NULL

-- part: nth_of_file
-- The how manieth read of the same file it is, the newest being the first.
SUM(mentions) OVER (
            PARTITION BY path ORDER BY at DESC, seq DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )

-- part: nth_of_files
-- The same of a read of several files: by the file that keeps it longest, or shortest.
CASE WHEN :batch_any = 1 THEN MAX(nth) ELSE MIN(nth) END

-- part: tokens
-- About how many tokens a result has: what tokens.estimate_size computes.
(11 * size - length + 39) / 40

-- part: ripe
-- Any rule may replace it: it is finished, dated, no error and not protected.
is_error = 0 AND is_pending = 0 AND at IS NOT NULL AND seq < :protected_from

-- part: is_output
:terminal = 1 AND is_terminal = 1

-- part: is_old_read
-- Of what counts as a read: to be replaced once newer reads of its files are enough.
:file_read = 1 AND seq < :protected_from
        AND (:batch_any = 1 OR paths_complete = 1)
        AND (:min_saving = 0 OR length - :file_read_placeholder >= :min_saving)

-- part: is_stale
nth_read > :file_read_keep AND (:batch_any = 1 OR paths_complete = 1)

-- condition: terminal
{is_output} AND {ripe} AND is_newest = 0 AND at < :old_before AND length > 0
        AND (:min_saving = 0 OR length - :terminal_placeholder >= :min_saving)

-- condition: file_read
{counts_as_read} AND {is_old_read} AND nth_read > :file_read_keep

-- condition: any_tool
:any_tool = 1 AND is_error = 0 AND is_pending = 0
        AND seq < :clear_before AND seq < :protected_from

-- condition: tool_output
:tool_output = 1 AND seq < :running_from AND is_pending = 0
        AND (is_error = 0 OR is_terminal = 1 OR :errors_stay = 0)

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
{is_output} AND at >= :old_before

-- condition: small
({is_output}) OR (:file_read = 1 AND is_read = 1 AND {is_stale})

-- condition: no_path
:file_read = 1 AND is_read = 1 AND nth_read IS NULL

-- condition: newest_reads
:file_read = 1 AND is_read = 1

-- query: verdicts
-- What is said of each tool result that a view shows, and why.
WITH RECURSIVE {line},
{named},
{judged},
newest AS MATERIALIZED (  -- by a limit, since then no sort carries more than these few
    SELECT seq
    FROM judged
    WHERE {takes_slot}
    ORDER BY at DESC, seq DESC
    LIMIT :terminal_keep
),
reads AS (
    SELECT judged.seq, at, path, CASE WHEN :dedupe = 1 THEN 1 ELSE mentions END AS mentions
    FROM judged
    JOIN tool_result_paths
        ON tool_result_paths.tree_id = :tree_id
        AND tool_result_paths.branch = judged.branch
        AND tool_result_paths.seq = judged.seq
    WHERE {counts_as_read}
),
counted AS (
    SELECT seq, {nth_of_file} AS nth FROM reads
),
files AS (
    SELECT seq, {nth_of_files} AS nth FROM counted GROUP BY seq
),
told AS (
    SELECT judged.*, files.nth AS nth_read,
        CASE
            WHEN judged.seq IN (SELECT seq FROM newest) THEN 1
            ELSE 0
        END AS is_newest
    FROM judged
    LEFT JOIN files ON files.seq = judged.seq
)
SELECT seq, call_seq, call_position,
    CASE
        {first_that_holds}
        ELSE 'other'
    END AS why,
    length, size, tool_name, kind, branch, is_error
FROM told
ORDER BY seq

-- query: rejudged
-- The same of some results, by ranks that are known: :wanted has 4 for one that is stale among the
-- reads of its files, 2 for one that is not, 0 for no read; and 1 more for one of the newest.
WITH {run},
wanted AS MATERIALIZED (
    SELECT CAST(pairs.key AS BIGINT) AS place, CAST(pairs.value AS BIGINT) AS rank
    FROM {pairs:wanted} AS pairs
),
{named},
{judged},
told AS (
    SELECT judged.*,
        CASE wanted.rank / 2 WHEN 2 THEN :file_read_keep + 1 WHEN 1 THEN 0 END AS nth_read,
        wanted.rank % 2 AS is_newest
    FROM wanted
    CROSS JOIN judged
    WHERE judged.seq = wanted.place
)
SELECT seq, call_seq, call_position,
    CASE
        {first_that_holds}
        ELSE 'other'
    END AS why,
    length, size, tool_name, kind, branch, is_error
FROM told
ORDER BY seq

-- query: ranked
-- What ranks each result, and the files of those that count as reads; :judged_before is beyond all.
WITH {run},
{named_lean},
{judged_lean},
counting AS (
    SELECT branch, seq, at,
        CASE WHEN {takes_slot} THEN 1 ELSE 0 END AS takes_slot,
        CASE WHEN {counts_as_read} THEN 1 ELSE 0 END AS counts
    FROM judged
)
SELECT counting.seq, at, takes_slot, path, CASE WHEN :dedupe = 1 THEN 1 ELSE mentions END AS mentions
FROM counting
LEFT JOIN tool_result_paths
    ON counts = 1
    AND tool_result_paths.tree_id = :tree_id
    AND tool_result_paths.branch = counting.branch
    AND tool_result_paths.seq = counting.seq
ORDER BY counting.seq

-- query: covered
-- The files and lines that were read, the newest reads first; a read of no known file is there too.
WITH RECURSIVE {line},
{named_lean},
{judged_lean}
SELECT judged.seq, path, start_line, end_line, contiguous
FROM judged
LEFT JOIN tool_result_paths
    ON tool_result_paths.tree_id = :tree_id
    AND tool_result_paths.branch = judged.branch
    AND tool_result_paths.seq = judged.seq
WHERE {counts_as_read}
ORDER BY at DESC, judged.seq DESC

-- query: slotless
-- The newest tool result that is not among the :terminal_keep newest; no older one is either.
WITH RECURSIVE {line},
{named_lean},
{judged_lean}
SELECT at, seq
FROM judged
WHERE {takes_slot}
ORDER BY at DESC, seq DESC
LIMIT 1 OFFSET :terminal_keep

-- part: told_lean
-- The newest are told by the place of the first that is none (query slotless).
told AS (
    SELECT judged.*,
        CASE WHEN at < :slot_at OR (at = :slot_at AND seq <= :slot_seq) THEN 0 ELSE 1 END AS is_newest
    FROM judged
)

-- part: stale_reads
-- What the file-read rule replaces of what the terminal rule leaves, and the tokens that saves.
weighed AS (
    SELECT branch, seq, at,
        CASE
            WHEN :sniff = 1 AND {terminal} THEN NULL  -- by its looks alone a read can be output
            WHEN {is_old_read} THEN {tokens} - :file_read_tokens
        END AS saving
    FROM told
    WHERE {counts_as_read}
),
reads AS (  -- by an outer join, since SQLite would begin an inner one with all paths there are
    SELECT weighed.seq, at, saving, path,
        CASE WHEN path IS NULL THEN 0 WHEN :dedupe = 1 THEN 1 ELSE mentions END AS mentions
    FROM weighed
    LEFT JOIN tool_result_paths
        ON tool_result_paths.tree_id = :tree_id
        AND tool_result_paths.branch = weighed.branch
        AND tool_result_paths.seq = weighed.seq
),
counted AS (
    SELECT seq, saving, {nth_of_file} AS nth FROM reads
),
stale_reads AS (
    SELECT seq, MAX(saving) AS saving
    FROM counted
    GROUP BY seq
    HAVING {nth_of_files} > :file_read_keep
)

-- query: terminal_saved
-- About how many tokens the terminal rule saves.
WITH RECURSIVE {line},
{named_lean},
{judged_lean},
{told_lean}
SELECT CAST(COALESCE(SUM({tokens} - :terminal_tokens), 0) AS BIGINT) AS saved
FROM told
WHERE {terminal}

-- query: file_read_saved
-- About how many tokens the file-read rule saves of what the terminal rule leaves.
WITH RECURSIVE {line},
{named_lean},
{judged_lean},
{told_lean},
{stale_reads}
SELECT CAST(COALESCE(SUM(saving), 0) AS BIGINT) AS saved FROM stale_reads

-- query: saved_of_each_read
-- The same, result by result.
WITH RECURSIVE {line},
{named_lean},
{judged_lean},
{told_lean},
{stale_reads}
SELECT seq, CAST(saving AS BIGINT) AS saving FROM stale_reads WHERE saving IS NOT NULL

-- query: finished
-- The results whose short form is enough, where the terminal rule does not replace them. Of the
-- file-read rule it knows nothing, and the kinds are those of the table.
WITH RECURSIVE {line},
{named_lean},
{judged_lean},
{told_lean}
SELECT told.branch, seq, tool_name, tool_kinds.kind, length, size, is_error
FROM told
LEFT JOIN tool_kinds ON tool_kinds.name = told.tool_name
WHERE CASE WHEN {terminal} THEN 0 ELSE 1 END = 1 AND {tool_output}

-- query: clearable
-- The newest result of any tool that is not among the :clear_keep newest; no older one is either.
WITH RECURSIVE {line}
SELECT tool_results.seq
FROM segments
JOIN tool_results ON {on_line}
WHERE {shown} AND tool_results.seq < :judged_before
ORDER BY tool_results.seq DESC
LIMIT 1 OFFSET :clear_keep
