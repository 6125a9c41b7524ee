"""Find sessions by their program and file, price usages by rows, tell which answers are under way.

The exact moment of a session's last activity leaves the indexes. They hold its second instead, so
that an append within the same second changes no indexed column.
"""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
rewrites_rows = False

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NUMBER = sa.Double().with_variant(sa.REAL(), "sqlite")
LISTED = ("updated_second", "source", "project_root")
IDENTIFIER = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns and tables, and list sessions by the second of their last activity."""
    for column in (
        sa.Column("updated_second", BIG, nullable=False, server_default="0"),
        sa.Column("source", IDENTIFIER),
        sa.Column("file", sa.Text()),
    ):
        op.add_column("sessions", column)
    op.execute("UPDATE sessions SET updated_second = updated_at / 1000")
    list_by_second()
    op.add_column("drafts", sa.Column("writer", sa.Text()))
    op.add_column("drafts", sa.Column("live_until", BIG))
    op.add_column("drafts", sa.Column("usage", sa.Text()))
    op.create_table(
        "prices",
        sa.Column("owner", IDENTIFIER, nullable=False),
        sa.Column("model", IDENTIFIER, nullable=False),
        sa.Column("valid_from", BIG, nullable=False),
        *(sa.Column(name, NUMBER) for name in ("input", "cached", "written", "output")),
        sa.PrimaryKeyConstraint("owner", "model", "valid_from", name="pk_prices"),
        sqlite_strict=True,
    )
    name_base_models()
    create_views()


def name_base_models() -> None:
    """Add the names of models by which usages are priced, without reseller, date and version."""
    op.add_column("usages", sa.Column("base_model", IDENTIFIER))
    if op.get_context().as_sql:  # statements that make a new store, which has no usages
        return
    connection = op.get_bind()
    named = sa.text("UPDATE usages SET base_model = :base WHERE model = :model")
    for (model,) in connection.execute(
        sa.text("SELECT DISTINCT model FROM usages WHERE model IS NOT NULL")
    ).all():
        bare = RESELLER.sub("", model.lower(), count=1)
        connection.execute(named, {"model": model, "base": VERSION.sub("", bare, count=1)})


def create_views() -> None:
    """Make the views anew that say more by now, and add those that are new."""
    dialect = op.get_context().dialect.name
    for name in SAYING_MORE:
        op.execute(f"DROP VIEW {name}")
    if dialect == "postgresql":
        op.execute(FIND_COMMAND)
    for view in VIEWS:
        op.execute(sa.DDL(spelled(view, dialect).replace("%", "%%")))


def list_by_second() -> None:
    """Put the second of the last activity into the indexes of lists, in place of its moment."""
    is_owned = sa.text("owner IS NOT NULL")
    op.drop_index("ix_sessions_archived_updated_at_id", "sessions")
    op.drop_index("ix_sessions_owner_archived_updated_at_id", "sessions")
    op.create_index("ix_sessions_archived_updated_second", "sessions", ["archived", *LISTED])
    op.create_index(
        "ix_sessions_owner_archived_updated_second",
        "sessions",
        ["owner", "archived", *LISTED],
        sqlite_where=is_owned,
        postgresql_where=is_owned,
    )


def downgrade() -> None:
    """Refuse: raw messages are never dropped by a schema change."""
    raise CommandError("messages are never dropped: restore a copy made before the upgrade")


RESELLER = re.compile(r"^(.*/)?(([a-z]+\.)?anthropic\.)?")
VERSION = re.compile(r"([-@](\d{8}|\d{4}-\d\d-\d\d|latest))?(-v\d+(:\d+)?)?(\[\w+\])?$")
SAYING_MORE = ("tool_log", "turn_log", "session_log")

ISO = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', {moment} / 1000.0, 'unixepoch')",
    # between the first and the last year that it has
    "postgresql": "CASE WHEN {moment} BETWEEN -62135596800000 AND 253402300799999 THEN "
    "to_char(to_timestamp({moment} / 1000.0) AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"\') END',
}

# Each usage once, by the prices of its day: an owner's before those of everybody.
JOINED = {
    "sqlite": "GROUP_CONCAT({name}, ', ')",
    "postgresql": "STRING_AGG({name}, ', ' ORDER BY {name})",
}

USAGE_COSTS = """CREATE VIEW usage_costs AS
WITH spent AS (
    SELECT b.session_id, u.branch, u.seq, u.usage % 4294967296 AS number, u.at, s.owner, u.model,
        u.input - u.cached - COALESCE(u.written, 0) AS input, u.cached,
        COALESCE(u.written, 0) AS written, u.output, u.cost, u.at - u.at % 86400000 AS day,
        CASE WHEN EXISTS (
            SELECT 1 FROM prices p WHERE p.model = u.model AND p.owner IN ('', s.owner)
        ) THEN u.model ELSE u.base_model END AS listed
    FROM usages u
    JOIN branches b ON b.tree_id = u.tree_id AND b.branch = u.branch
    JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id
), dated AS (
    SELECT spent.*, (
            SELECT MAX(p.valid_from) FROM prices p
            WHERE p.owner = spent.owner AND p.model = spent.listed AND p.valid_from <= spent.day
        ) AS own_from, (
            SELECT MAX(p.valid_from) FROM prices p
            WHERE p.owner = '' AND p.model = spent.listed AND p.valid_from <= spent.day
        ) AS public_from
    FROM spent
)
SELECT d.session_id, d.branch, d.seq, d.number, iso(d.at) AS at, d.owner, d.model,
    CASE WHEN p.model IS NULL THEN d.cost ELSE (
        CASE WHEN d.input = 0 THEN 0 ELSE d.input * p.input END
        + CASE WHEN d.cached = 0 THEN 0 ELSE d.cached * p.cached END
        + CASE WHEN d.written = 0 THEN 0 ELSE d.written * p.written END
        + CASE WHEN d.output = 0 THEN 0 ELSE d.output * p.output END
    ) / 1000000.0 END AS cost, p.model AS price_model, iso(p.valid_from) AS price_from
FROM dated d
LEFT JOIN prices p ON d.cost IS NULL AND p.model = d.listed
    AND p.owner = CASE WHEN d.own_from IS NULL THEN '' ELSE d.owner END
    AND p.valid_from = COALESCE(d.own_from, d.public_from)"""

SESSION_LOG = """CREATE VIEW session_log AS
WITH runs AS (
    SELECT g.tree_id, g.session_id, g.last, f.turn, f.tokens_through,
           CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
    FROM session_segments g
    JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
    LEFT JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq = g.last
),
lines AS (
    SELECT tree_id, session_id, MAX(turn) AS turns, MAX(tokens_through) AS tokens,
           MAX(CASE WHEN inherited = 1 THEN last ELSE 0 END) AS inherited,
           MAX(CASE WHEN inherited = 1 THEN tokens_through ELSE 0 END) AS inherited_tokens
    FROM runs
    GROUP BY tree_id, session_id
),
costs AS (
    SELECT session_id, SUM(cost) AS cost FROM usage_costs GROUP BY session_id
),
asked AS (
    SELECT session_id, joined(model) AS models
    FROM (
        SELECT DISTINCT session_id, model FROM usage_costs
        WHERE model IS NOT NULL ORDER BY session_id, model
    ) AS named
    GROUP BY session_id
)
SELECT s.id AS session_id, s.title, iso(s.created_at) AS created_at,
       iso(s.updated_at) AS updated_at, s.project_root,
       (SELECT r.id FROM sessions r
        WHERE r.tree_id = s.tree_id AND r.forked_at IS NULL) AS root_session,
       s.forked_from, s.forked_at,
       (SELECT COUNT(*) FROM sessions f
        WHERE f.tree_id = s.tree_id AND f.forked_from = s.id) AS forks,
       s.head AS messages, s.head - COALESCE(l.inherited, 0) AS own_messages,
       COALESCE(l.turns, 0) AS turns, COALESCE(l.tokens, 0) AS tokens,
       COALESCE(l.tokens - l.inherited_tokens, 0) AS own_tokens,
       s.owner, s.archived, s.source, a.models, c.cost, s.metadata
FROM sessions s
LEFT JOIN lines l ON l.tree_id = s.tree_id AND l.session_id = s.id
LEFT JOIN costs c ON c.session_id = s.id
LEFT JOIN asked a ON a.session_id = s.id"""

COMMAND_KEYS = (
    "command",
    "cmd",
    "CommandLine",
    "commandLine",
    "commands",
    "cmds",
    "script",
    "code",
)
"""Where programs have the command, or several, in the arguments of a terminal tool."""

# SQLite's functions of JSON are not for views, and fail where arguments are no JSON; so the value
# of the first key is cut out of the text. Marks stand for what is escaped, and between words.
_GIVEN = "\n".join(
    f"""               WHEN instr({{arguments}}, '"{key}":')
               THEN substr({{arguments}}, instr({{arguments}}, '"{key}":') + {len(key) + 3})"""
    for key in COMMAND_KEYS
)
COMMAND = {
    "sqlite": f"""(
           SELECT replace(replace(replace(replace(replace(
               CASE
                   WHEN words GLOB '*sh' || char(3) || '-*c' || char(3) || '*'
                   THEN substr(words, instr(words, 'c' || char(3)) + 2)
                   ELSE words
               END,
               char(3), ' '), '\\n', char(10)), '\\t', char(9)), char(2), '"'), char(1), '\\')
           FROM (SELECT CASE substr(given, 1, 1)
               WHEN '"' THEN substr(given, 2, NULLIF(instr(substr(given, 2), '"'), 0) - 1)
               WHEN '[' THEN replace(replace(
                   substr(given, 3, NULLIF(instr(given, '"]'), 0) - 3),
                   '", "', char(3)), '","', char(3))
           END AS words FROM (SELECT replace(replace(ltrim(CASE
{_GIVEN}
               WHEN substr(ltrim({{arguments}}), 1, 1) NOT IN ('{{{{', '[', '"')
               THEN '"' || replace({{arguments}}, '"', '\\"') || '"'
           END), '\\\\', char(1)), '\\"', char(2)) AS given))
       )""",
    "postgresql": "find_command({arguments})",
}
FIND_COMMAND = f"""CREATE FUNCTION find_command(arguments text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    given json;
    key text;
    words text[];
BEGIN
    IF left(ltrim(arguments), 1) NOT IN ('{{', '[', '"') THEN RETURN arguments; END IF;
    FOREACH key IN ARRAY ARRAY[{", ".join(f"'{each}'" for each in COMMAND_KEYS)}] LOOP
        given := CAST(arguments AS json);
        given := COALESCE(given -> key, given -> 'action' -> key);
        EXIT WHEN json_typeof(given) IN ('string', 'array');
    END LOOP;
    IF json_typeof(given) = 'string' THEN RETURN given #>> '{{}}'; END IF;
    words := ARRAY(SELECT json_array_elements_text(given));
    IF words[1] LIKE '%sh' AND words[2] LIKE '-%c' THEN RETURN words[3]; END IF;
    RETURN NULLIF(array_to_string(words, ' '), '');
EXCEPTION WHEN OTHERS THEN RETURN NULL;  -- the arguments are cut off
END $$"""

TOOL_LOG = """CREATE VIEW tool_log AS
SELECT g.session_id, r.seq, r.tool_name,
       CASE
           WHEN k.kind IS NOT NULL THEN k.kind
           WHEN r.tool_name IS NULL AND m.content LIKE '📄%' THEN 'file_read'
           WHEN r.tool_name IS NULL AND LTRIM(m.content, ' 0123456789') LIKE '→%'
               AND LTRIM(m.content) NOT LIKE '→%' THEN 'file_read'
           WHEN r.tool_name IS NULL AND r.looks_terminal = 1 THEN 'terminal'
           ELSE 'other'
       END AS kind,
       CASE WHEN k.kind = 'terminal' THEN command(c.arguments) END AS command,
       r.call_seq, r.call_position, c.call_id, c.arguments,
       iso(COALESCE(m.created_at, m.stored_at)) AS at, iso(m.created_at) AS created_at,
       iso(m.stored_at) AS stored_at,
       CAST(
           COALESCE(m.created_at, m.stored_at) - COALESCE(n.created_at, n.stored_at)
           AS DOUBLE PRECISION
       ) / 1000 AS seconds,
       r.status, r.exit_code, r.has_stderr, r.error_prefix, r.length,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
FROM session_segments g
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
JOIN tool_results r
    ON r.tree_id = g.tree_id AND r.branch = g.branch AND r.seq BETWEEN g.first AND g.last
JOIN messages m ON m.tree_id = r.tree_id AND m.branch = r.branch AND m.seq = r.seq
LEFT JOIN tool_kinds k ON k.name = r.tool_name
LEFT JOIN session_segments h
    ON h.tree_id = g.tree_id AND h.session_id = g.session_id
    AND r.call_seq BETWEEN h.first AND h.last
LEFT JOIN messages n ON n.tree_id = h.tree_id AND n.branch = h.branch AND n.seq = r.call_seq
LEFT JOIN tool_calls c
    ON c.tree_id = h.tree_id AND c.branch = h.branch
    AND c.seq = r.call_seq AND c.position = r.call_position"""

TURN_LOG = """CREATE VIEW turn_log AS
WITH turns AS (
    SELECT g.tree_id, g.session_id, f.turn, MIN(f.seq) AS first, MAX(f.seq) AS last,
           COUNT(*) AS messages, CAST(SUM(f.tokens) AS BIGINT) AS tokens,
           SUM(CASE WHEN f.role = 'tool' THEN 1 ELSE 0 END) AS tool_results
    FROM session_segments g
    JOIN message_facts f
        ON f.tree_id = g.tree_id AND f.branch = g.branch AND f.seq BETWEEN g.first AND g.last
    GROUP BY g.tree_id, g.session_id, f.turn
)
SELECT t.session_id, t.turn, t.first, t.last, t.messages, t.tool_results, t.tokens,
       iso(COALESCE(m.created_at, m.stored_at)) AS at, iso(m.created_at) AS created_at,
       iso(m.stored_at) AS stored_at,
       CAST(
           COALESCE(n.created_at, n.stored_at) - COALESCE(m.created_at, m.stored_at)
           AS DOUBLE PRECISION
       ) / 1000 AS seconds,
       CASE WHEN m.role = 'user' THEN m.content END AS user_content,
       CASE WHEN b.session_id = g.session_id THEN 0 ELSE 1 END AS inherited
FROM turns t
JOIN session_segments g
    ON g.tree_id = t.tree_id AND g.session_id = t.session_id AND t.first BETWEEN g.first AND g.last
JOIN branches b ON b.tree_id = g.tree_id AND b.branch = g.branch
JOIN messages m ON m.tree_id = g.tree_id AND m.branch = g.branch AND m.seq = t.first
JOIN session_segments h
    ON h.tree_id = t.tree_id AND h.session_id = t.session_id AND t.last BETWEEN h.first AND h.last
JOIN messages n ON n.tree_id = h.tree_id AND n.branch = h.branch AND n.seq = t.last"""

# The model is that of the newest usage up to the message.
NOTE_LOG = """CREATE VIEW note_log AS
SELECT n.session_id, n.branch, n.seq, m.role, n.key, n.value, iso(n.at) AS at, n.owner,
       (SELECT u.model FROM usages u
        WHERE u.tree_id = n.tree_id AND u.branch = n.branch AND u.seq <= n.seq
        ORDER BY u.seq DESC, u.usage DESC LIMIT 1) AS model
FROM notes n
JOIN sessions s ON s.tree_id = n.tree_id AND s.id = n.session_id
JOIN messages m ON m.tree_id = n.tree_id AND m.branch = n.branch AND m.seq = n.seq"""

DRAFT_LOG = """CREATE VIEW draft_log AS
SELECT d.session_id, d.draft, d.branch, d.head, iso(d.at) AS at, s.owner,
       iso(d.live_until) AS live_until, d.wire_format, d.message
FROM drafts d
JOIN sessions s ON s.tree_id = d.tree_id AND s.id = d.session_id"""

VIEWS = (TOOL_LOG, TURN_LOG, NOTE_LOG, DRAFT_LOG, USAGE_COSTS, SESSION_LOG)
"""What people ask, with times as ISO texts, as in revision 0003."""


def spelled(statement: str, dialect: str) -> str:
    """Return a view's statement as a dialect spells times, lists and the command in arguments."""
    with_times = re.sub(
        r"iso\((COALESCE\([a-z_., ]+\)|[a-z_.]+)\)",
        lambda found: ISO[dialect].format(moment=found[1]),
        statement,
    )
    with_names = re.sub(
        r"joined\(([a-z_.]+)\)",
        lambda found: JOINED[dialect].format(name=found[1]),
        with_times,
    )
    return re.sub(
        r"command\(([a-z_.]+)\)",
        lambda found: COMMAND[dialect].format(arguments=found[1]),
        with_names,
    )
