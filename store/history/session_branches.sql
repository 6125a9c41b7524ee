-- The branches of a session: the one that its head is on, those that it left, and those that its
-- sources had left when they were forked. A server reads the lines of branches from the rows of
-- their ancestors; the sources are a chain of sessions, which has no such rows.
--
-- Values: whole numbers, but :session_id.

-- part: fork
sessions AS fork
WHERE fork.tree_id = :tree_id AND fork.id = sources.session_id

-- part: first_move
head_moves AS forks
WHERE forks.tree_id = :tree_id AND forks.session_id = sources.session_id AND forks.move = 1

-- part: sources
WITH RECURSIVE
-- The session, the one that it was forked from, the one before: how many moves each had made by
-- then, the newest record of that time, and the branch that all older ones stand before. A source
-- of which the id was taken anew since has younger branches.
sources(generation, session_id, moves, records, before) AS (
    SELECT 0, sessions.id, COALESCE((
            SELECT MAX(head_moves.move)
            FROM head_moves
            WHERE head_moves.tree_id = :tree_id AND head_moves.session_id = :session_id
        ), 0), :never, :never
    FROM sessions
    WHERE sessions.tree_id = :tree_id AND sessions.id = :session_id
    UNION ALL
    SELECT sources.generation + 1, fork.forked_from, forks.source_move, forks.source_record,
        forks.to_branch
    FROM sources
    {lookup:fork}
    {lookup:first_move}
    WHERE forks.kind = 'fork' AND forks.source_move IS NOT NULL
        AND forks.to_branch < sources.before
)

-- part: seen
-- What a session can go back to, and how far each branch goes for it.
{sources},
-- The last move away from each branch.
gone(generation, session_id, moves, records, branch, move, head) AS (
    SELECT sources.generation, sources.session_id, sources.moves, sources.records,
        head_moves.from_branch, MAX(head_moves.move), MAX(head_moves.from_position)
    FROM sources
    JOIN head_moves
        ON head_moves.tree_id = :tree_id AND head_moves.session_id = sources.session_id
        AND head_moves.move <= sources.moves
    WHERE head_moves.kind <> 'fork' AND head_moves.from_branch < sources.before
    GROUP BY sources.generation, sources.session_id, sources.moves, sources.records,
        head_moves.from_branch
),
seen(branch, parent_branch, parent_position, head, left_at, records, generation, move) AS (
    SELECT branches.branch, branches.parent_branch, branches.parent_position, sessions.head,
        NULL, :never, -1, 0
    FROM sessions
    JOIN branches
        ON branches.tree_id = :tree_id AND branches.branch = sessions.head_branch
    WHERE sessions.tree_id = :tree_id AND sessions.id = :session_id
    UNION ALL
    SELECT branches.branch, branches.parent_branch, branches.parent_position, gone.head,
        leaving.moved_at, gone.records, gone.generation, gone.move
    FROM gone
    JOIN head_moves AS leaving
        ON leaving.tree_id = :tree_id AND leaving.session_id = gone.session_id
        AND leaving.move = gone.move
    JOIN branches ON branches.tree_id = :tree_id AND branches.branch = gone.branch
    WHERE NOT EXISTS (
            -- where a session stands it has come back to
            SELECT 1
            FROM head_moves AS last
            WHERE last.tree_id = :tree_id AND last.session_id = gone.session_id
                AND last.move = gone.moves AND last.to_branch = gone.branch
        )
        AND (gone.generation = 0 OR gone.head > branches.parent_position)
        AND NOT EXISTS (
            -- where the session or a nearer source went on from the end, it did so on its own
            SELECT 1
            FROM sources AS nearer
            JOIN branches AS own
                ON own.tree_id = :tree_id AND own.parent_branch = gone.branch
                AND own.parent_position = gone.head AND own.session_id = nearer.session_id
                AND own.branch < nearer.before
            WHERE nearer.generation < gone.generation
        )
)

-- query: branches
{seen}
SELECT branch, parent_branch, parent_position, head, left_at, generation < 0
FROM seen
ORDER BY branch

-- query: inherited
-- A branch of a source, and the newest record on it that counts for the session.
{seen}
SELECT parent_position, head, records
FROM seen
WHERE branch = :branch AND generation > 0

-- part: lines
-- The branches that may hold :seq, or the position before, on each line.
walk(line, branch, parent_branch, parent_position, last) AS (
    SELECT branch, branch, parent_branch, parent_position, head
    FROM seen
    WHERE head >= :seq - 1
    UNION ALL
    SELECT walk.line, parents.branch, parents.parent_branch, parents.parent_position,
        walk.parent_position
    FROM walk
    JOIN branches AS parents
        ON parents.tree_id = :tree_id AND parents.branch = walk.parent_branch
    WHERE walk.parent_position >= :seq - 1
)

-- part: meeting
WHERE seen.head >= :seq - 1 AND a.last >= :seq - 1 AND a.first <= :seq

-- server: lines
walk(line, branch, parent_position, last) AS (
    SELECT branch, branch, parent_position, head
    FROM seen
    WHERE head >= :seq - 1
    UNION ALL
    SELECT seen.branch, a.ancestor, a.first - 1, a.last
    FROM {near:seen}
    {meeting}
    UNION ALL
    SELECT seen.branch, a.ancestor, a.first - 1, a.last
    FROM {far:seen}
    {meeting}
    UNION ALL
    SELECT seen.branch, a.ancestor, a.first - 1, a.last
    FROM {farthest:seen}
    {meeting}
)

-- query: followers
-- For each line its branch, which branch holds :seq on it, and which the position before; the
-- session's own line first, then those that were left last.
{seen},
{lines}
SELECT seen.branch, holding.branch, earlier.branch
FROM seen
LEFT JOIN walk AS holding
    ON holding.line = seen.branch
    AND holding.parent_position < :seq AND holding.last >= :seq
LEFT JOIN walk AS earlier
    ON earlier.line = seen.branch
    AND earlier.parent_position < :seq - 1 AND earlier.last >= :seq - 1
ORDER BY seen.generation, seen.move DESC

-- part: owned
-- The branches of a line with the sessions whose own they are, and how far the line goes on each.
line(branch, parent_branch, parent_position, session_id, last) AS (
    SELECT branches.branch, branches.parent_branch, branches.parent_position, branches.session_id,
        :last
    FROM branches
    WHERE branches.tree_id = :tree_id AND branches.branch = :branch
    UNION ALL
    SELECT parents.branch, parents.parent_branch, parents.parent_position, parents.session_id,
        CASE WHEN line.parent_position < line.last THEN line.parent_position ELSE line.last END
    FROM line
    JOIN branches AS parents
        ON parents.tree_id = :tree_id AND parents.branch = line.parent_branch
)

-- part: held
branches AS held
WHERE held.tree_id = :tree_id AND held.branch = above.ancestor

-- server: owned
line(branch, session_id, last) AS (
    SELECT branches.branch, branches.session_id, :last
    FROM branches
    WHERE branches.tree_id = :tree_id AND branches.branch = :branch
    UNION ALL
    SELECT above.ancestor, held.session_id, LEAST(above.last, :last)
    FROM (
        {above}
    ) AS above
    {lookup:held}
)

-- part: newest
FROM usages AS newest
WHERE newest.tree_id = :tree_id AND newest.branch = line.branch AND newest.seq <= line.last
    AND newest.usage / {places} < sources.before AND newest.input > 0
ORDER BY newest.seq DESC, newest.usage DESC
LIMIT 1

-- part: latest
-- The newest usage alone of each branch, after the branches: a session has thousands of usages.
CROSS JOIN usages
WHERE usages.tree_id = :tree_id AND usages.branch = line.branch
    AND (usages.seq, usages.usage) = (
        SELECT newest.seq, newest.usage
        {newest}
    )

-- server: latest
JOIN LATERAL (
    SELECT newest.*
    {newest}
) AS usages ON true

-- query: last_usage
-- The usage that was recorded last on a line, up to :last: by the session, or by a source of it
-- before the fork. The number of a usage begins with the newest branch of its time (`usages`).
-- A usage without input is of a stream that broke off before its input was told.
{sources},
{owned}
SELECT usages.seq, usages.input, usages.output, usages.at, usages.cached
FROM line
JOIN sources ON sources.session_id = line.session_id AND line.branch < sources.before
{latest}
ORDER BY usages.seq DESC, usages.branch DESC, usages.usage DESC
LIMIT 1
