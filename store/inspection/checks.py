"""The checks of structures, schema, seals, keys, and of the rules between rows; they yield findings.

Each rule is a query that finds nothing in a sound store, and a comment before it: the place and
the problem of a breach, as formats that are filled in from the found row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, literal_column, select, text
from sqlalchemy.exc import DBAPIError

from ..database import (
    BIG_INTEGER,
    GUARDED_TABLES,
    SCHEMA_HEAD,
    SCHEMA_VERSION,
    SEAL_COLUMN,
    SEALED_TABLES,
    Database,
    Row,
    Statement,
    compute_seal,
    list_sealed_columns,
    session_keys,
    sessions,
    tool_kinds,
    upgrade_schema,
)
from ..errors import VERIFY_HINT, Damaged, StoreError
from ..history import derive_metadata_keys
from ..messages import decode_as
from ..records import Finding
from ..tools import ALL_TOOL_KINDS

OLDER = "older"
"""The name of the finding about messages that an earlier release did not protect; no damage."""
STREAM_OPTIONS = {"stream_results": True, "max_row_buffer": 50}
READ_ERRORS = (sqlite3.Error, DBAPIError, StoreError)
"""The errors of reading a damaged store: of the database, or of decoding its rows."""

SCHEMA_OBJECTS = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL",
    "postgresql": """
SELECT 'trigger', t.tgname, '' FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = current_schema()::regnamespace
    AND NOT t.tgisinternal
    AND t.tgenabled IN ('O', 'A')
UNION ALL SELECT 'view', viewname, '' FROM pg_views WHERE schemaname = current_schema()""",
}
SchemaObjects = dict[tuple[str, str], str]
"""The statements that made tables, indexes, triggers and views, by kind and name."""

SERVER_TRIGGERS = ("{}_no_change", "{}_no_truncate")

STORED_KEYS = Statement(
    select(session_keys.c.key, session_keys.c.value).where(
        session_keys.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        session_keys.c.session_id == bindparam("session_id"),
    )
)
_select_tree_metadata = select(sessions.c.tree_id, sessions.c.id, sessions.c.metadata)
METADATA_OF_TREE = Statement(
    _select_tree_metadata.where(sessions.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER))
)

ROW_RULES = """
-- session {0!r}: is in the look-up of ids, but not in the tree {1} that this names
SELECT i.id, i.tree_id FROM session_ids i LEFT JOIN sessions s USING (tree_id, id) WHERE s.head IS NULL
-- session {0!r}: cannot be found, it is not in the look-up of ids
SELECT s.id FROM sessions s LEFT JOIN session_ids i USING (tree_id, id) WHERE i.id IS NULL
-- session {0!r}: its head is on branch {1}, which is not its own
SELECT s.id, s.head_branch FROM sessions s LEFT JOIN branches b ON b.tree_id = s.tree_id AND b.branch = s.head_branch
WHERE b.session_id IS NULL OR b.session_id <> s.id
-- session {0!r}: its case rule is not that of session {1!r} in the same tree
SELECT s.id, o.id FROM sessions s
JOIN sessions o ON o.tree_id = s.tree_id AND o.id = (SELECT MIN(id) FROM sessions WHERE tree_id = s.tree_id)
WHERE s.fold_case <> o.fold_case
-- session {0!r}: its project root is not that of session {1!r}, which it continues
SELECT s.id, o.id FROM sessions s
JOIN head_moves f ON f.tree_id = s.tree_id AND f.session_id = s.id AND f.move = 1 AND f.source_move IS NOT NULL
JOIN branches b ON b.tree_id = s.tree_id AND b.branch = f.from_branch AND b.session_id = s.forked_from
JOIN sessions o ON o.tree_id = s.tree_id AND o.id = s.forked_from
WHERE COALESCE(s.project_root, '') <> COALESCE(o.project_root, '')
-- session {0!r}: was forked at {1}, but its first move went to {2}
SELECT s.id, s.forked_at, m.to_position FROM sessions s
LEFT JOIN head_moves m ON m.tree_id = s.tree_id AND m.session_id = s.id AND m.move = 1 AND m.kind = 'fork'
WHERE COALESCE(s.forked_at, -1) <> COALESCE(m.to_position, -1)
-- session {0!r}: its head is at {1} on branch {2}, its last move went to {3} on branch {4}
SELECT s.id, s.head, s.head_branch, m.to_position, m.to_branch FROM sessions s
JOIN head_moves m ON m.tree_id = s.tree_id AND m.session_id = s.id
    AND m.move = (SELECT MAX(move) FROM head_moves WHERE tree_id = s.tree_id AND session_id = s.id)
WHERE m.to_branch <> s.head_branch OR m.to_position > s.head
    OR (m.kind IN ('rewind', 'switch') AND COALESCE(s.last_rewind, 0) <> m.move)
-- session {0!r}: its head is at {1}, where no move went to, but its branch ends at {2}
SELECT s.id, s.head, s.last FROM (
    SELECT e.*, COALESCE((SELECT MAX(seq) FROM messages m WHERE m.tree_id = e.tree_id AND m.branch = e.head_branch), 0) AS last
    FROM sessions e) AS s
WHERE s.head <> s.last AND NOT EXISTS (
    SELECT 1 FROM head_moves m WHERE m.tree_id = s.tree_id AND m.session_id = s.id AND m.to_branch = s.head_branch
        AND m.to_position = s.head AND NOT EXISTS (
            SELECT 1 FROM head_moves n WHERE n.tree_id = m.tree_id AND n.session_id = m.session_id AND n.move > m.move))
-- session {0!r}: its last rewind is move {1}, which is none of its rewinds and switches
SELECT s.id, s.last_rewind FROM sessions s
LEFT JOIN head_moves m ON m.tree_id = s.tree_id AND m.session_id = s.id AND m.move = s.last_rewind
    AND kind IN ('rewind', 'switch')
WHERE s.last_rewind IS NOT NULL AND m.move IS NULL
-- session {0!r}, move {1}: does not follow from the move before it
SELECT session_id, move FROM (
    SELECT m.*, LAG(move) OVER w AS earlier, LAG(to_branch) OVER w AS branch, LAG(to_position) OVER w AS position,
        CASE LAG(kind) OVER w WHEN 'fork' THEN NULL WHEN 'forget' THEN NULL WHEN 'undo' THEN earlier_rewind ELSE move - 1 END AS undoable
    FROM head_moves m WINDOW w AS (PARTITION BY tree_id, session_id ORDER BY move)
) AS followed WHERE (move <> COALESCE(earlier, 0) + 1 AND kind <> 'forget') OR from_branch <> branch OR from_position < position
    OR (kind IN ('rewind', 'switch') AND COALESCE(earlier_rewind, 0) <> COALESCE(undoable, 0))
-- session {0!r}, move {1}: no {2} goes from {3} to {4}
SELECT m.session_id, m.move, m.kind, m.from_position, m.to_position FROM head_moves m
WHERE m.kind NOT IN ('fork', 'rewind', 'switch', 'undo', 'forget') OR (m.kind = 'fork' AND m.move <> 1)
    OR ((m.kind = 'forget') <> (m.from_branch IS NULL))
    OR (m.kind = 'rewind' AND m.to_position >= m.from_position)
    OR (m.kind = 'undo' AND NOT EXISTS (
        SELECT 1 FROM head_moves r
        WHERE r.tree_id = m.tree_id AND r.session_id = m.session_id AND r.kind IN ('rewind', 'switch')
            AND r.move < m.move AND r.from_position = m.to_position
            AND (r.from_branch = m.to_branch OR r.to_branch < m.to_branch)))
-- session {0!r}: has keys of metadata, but there is no such session
SELECT DISTINCT k.session_id FROM session_keys k
LEFT JOIN sessions s ON s.tree_id = k.tree_id AND s.id = k.session_id WHERE s.id IS NULL
-- session {0!r}: has a draft, but there is no such session
SELECT d.session_id FROM drafts d
LEFT JOIN sessions s ON s.tree_id = d.tree_id AND s.id = d.session_id WHERE s.id IS NULL
-- session {0!r}, move {1}: there is no such session
SELECT m.session_id, m.move FROM head_moves m
LEFT JOIN sessions s ON s.tree_id = m.tree_id AND s.id = m.session_id WHERE s.id IS NULL
-- tree {0}, branch {1}: belongs to session {2!r}, which does not exist
SELECT b.tree_id, b.branch, b.session_id FROM branches b
LEFT JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id WHERE b.session_id IS NOT NULL AND s.id IS NULL
-- tree {0}, branch {1}: belongs to no session, and no line runs through it
SELECT b.tree_id, b.branch FROM branches b WHERE b.session_id IS NULL
    AND NOT EXISTS (SELECT 1 FROM branches c WHERE c.tree_id = b.tree_id AND c.parent_branch = b.branch)
    AND NOT EXISTS (
        SELECT 1 FROM erasures e WHERE e.tree_id = b.tree_id AND e.branch = b.branch AND e.finished_at IS NULL)
-- tree {0}, branch {1}: knows of compaction {2}, which this tree never had
SELECT b.tree_id, b.branch, b.records_seen FROM branches b WHERE b.records_seen > COALESCE(
    (SELECT MAX(compaction) FROM compaction_records c WHERE c.tree_id = b.tree_id), 0)
-- session {0!r}, move {1}: knows of compaction {2}, which this tree never had
SELECT m.session_id, m.move, m.source_record FROM head_moves m WHERE m.source_record > COALESCE(
    (SELECT MAX(compaction) FROM compaction_records c WHERE c.tree_id = m.tree_id), 0)
-- tree {0}, branch {1}: continues branch {2} from {3}, which this does not hold
SELECT b.tree_id, b.branch, b.parent_branch, b.parent_position FROM branches b
WHERE (b.parent_branch IS NULL AND b.parent_position <> 0) OR b.parent_branch >= b.branch
    OR (b.parent_branch IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM branches p
        LEFT JOIN messages m ON m.tree_id = p.tree_id AND m.branch = p.branch AND m.seq = b.parent_position
        WHERE p.tree_id = b.tree_id AND p.branch = b.parent_branch
            AND (p.parent_position < m.seq OR (p.parent_position = b.parent_position AND EXISTS (
                SELECT 1 FROM compaction_records c
                WHERE c.tree_id = p.tree_id AND c.branch = p.branch AND c.head = p.parent_position)))))
    AND NOT EXISTS (
        SELECT 1 FROM erasures e WHERE e.tree_id = b.tree_id AND e.branch = b.branch AND e.finished_at IS NULL)
-- tree {0}, branch {1}, {2} {3}: is about position {4}, beyond the end of its branch
SELECT c.tree_id, c.branch, c.kind, c.number, c.position FROM (
    SELECT tree_id, branch, 'compaction' AS kind, compaction AS number, head AS position FROM compaction_records
    UNION ALL SELECT tree_id, branch, 'summary', summary, last FROM summaries
) AS c JOIN branches b USING (tree_id, branch) WHERE c.position > b.parent_position AND c.position > COALESCE(
    (SELECT MAX(seq) FROM messages m WHERE m.tree_id = c.tree_id AND m.branch = c.branch), 0)
    AND NOT EXISTS (
        SELECT 1 FROM erasures e WHERE e.tree_id = c.tree_id AND e.branch = c.branch AND e.finished_at IS NULL)
-- tree {0}, compaction {1}: hides positions {2} to {3}, which are no range before its head
SELECT tree_id, compaction, hidden_first, hidden_last FROM compaction_records
WHERE kind = 'hide' AND (first_kept IS NOT NULL OR COALESCE(hidden_first, 0) NOT BETWEEN 1 AND hidden_last
    OR COALESCE(hidden_last, 0) NOT BETWEEN 1 AND head)
-- tree {0}, branch {1}, position {2}: its redaction is still open, so its raw rows are not protected
SELECT tree_id, branch, seq FROM redactions WHERE finished_at IS NULL
-- tree {0}, branch {1}, position {2}: is recorded as redacted, but says something
SELECT r.tree_id, r.branch, r.seq FROM redactions r LEFT JOIN messages m USING (tree_id, branch, seq)
WHERE COALESCE(m.content, '') <> '[redacted]'
AND COALESCE(m.extra, '') NOT LIKE '%"redacted"_"replaced"%'
-- tree {0}: keeps a picture or a file that no message has
SELECT a.tree_id FROM attachments a LEFT JOIN message_attachments p USING (tree_id, digest) WHERE p.position IS NULL
    AND NOT EXISTS (SELECT 1 FROM erasures e WHERE e.tree_id = a.tree_id AND e.finished_at IS NULL)
-- tree {0}, branch {1}, position {2}: is recorded to hold a picture or a file, but says everything itself
SELECT p.tree_id, p.branch, p.seq FROM message_attachments p LEFT JOIN messages m USING (tree_id, branch, seq)
LEFT JOIN tool_calls c ON c.tree_id = p.tree_id AND c.branch = p.branch AND c.seq = p.seq
    AND c.position = p.position / 4294967296 - 2
WHERE CASE p.position / 4294967296
    WHEN 0 THEN COALESCE(m.content_form, '') <> 'attached'
    WHEN 1 THEN COALESCE(m.extra, '') NOT LIKE '_ %'
    ELSE COALESCE(c.arguments_form, '') NOT LIKE 'attached%'
END
-- tree {0}, erasure {1}: is recorded as purged, but not as ended
SELECT tree_id, erasure FROM erasures WHERE finished_at IS NULL AND purged_at IS NOT NULL
-- tree {0}, erasure {1}: is still open, so raw rows of branch {2} are not protected, though it is none to erase
SELECT e.tree_id, e.erasure, e.branch FROM erasures e
LEFT JOIN branches b ON b.tree_id = e.tree_id AND b.branch = e.branch
WHERE e.finished_at IS NULL AND (b.branch IS NULL OR b.session_id IS NOT NULL)
"""
"""The rules between rows: the place and the problem of a breach, and a query for breaches."""


@contextmanager
def open_savepoint(connection: Connection) -> Iterator[None]:
    """Let a transaction go on after an error; a server needs a savepoint for that."""
    if connection.dialect.name == "sqlite":
        yield
        return
    with connection.begin_nested():
        yield


def report_unchecked_place(where: str, error: Exception) -> Finding:
    """Return the finding for a place that could not be checked, and why.

    An error that neither a database nor a decoder raised says nothing about the store.
    """
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    if isinstance(error, READ_ERRORS):
        return Finding("integrity", where, f"cannot be read to its end: {reason}")
    problem = f"this check could not run: {type(error).__name__}: {reason}"
    return Finding("unchecked", where, problem)


def require_sound(findings: Iterable[Finding]) -> None:
    """Raise Damaged for the first finding."""
    for finding in findings:
        if finding.check != OLDER:
            raise Damaged(f"{finding.where}: {finding.problem}; {VERIFY_HINT}")


UNKNOWN_KINDS = Statement(
    select(tool_kinds.c.name, tool_kinds.c.kind).where(
        tool_kinds.c.kind.not_in([literal_column(f"'{kind}'") for kind in ALL_TOOL_KINDS])
    )
)


def check_kinds(connection: Connection) -> Iterator[Finding]:
    """Yield the tools whose kind no rule knows."""
    for name, kind in UNKNOWN_KINDS.rows(connection):
        yield Finding("kinds", f"the tool {name!r}", f"its kind is {kind!r}, which is none")


def check_structures(connection: Connection) -> Iterator[Finding]:
    """Yield the damage that SQLite finds in its own structures: pages, indexes, foreign keys.

    A server checks them itself, and keeps its foreign keys.
    """
    if connection.dialect.name != "sqlite":
        return
    yield from check_pages(connection)
    for table, rowid, parent, _ in connection.execute(text("PRAGMA foreign_key_check")):
        # the rows of a table WITHOUT ROWID have no number
        where = table if rowid is None else f"{table}, row {rowid}"
        yield Finding("orphan", where, f"what it belongs to is not in {parent}")


def check_pages(connection: Connection, table: str | None = None) -> Iterator[Finding]:
    """Yield the damage that SQLite finds in a table's pages and indexes, or in the file's."""
    for (problem,) in _build_integrity_check(table).rows(connection):
        if problem != "ok":
            yield Finding("integrity", table or "the file", problem)


@cache
def _build_integrity_check(table: str | None) -> Statement[Row]:
    return Statement(
        text(f"PRAGMA integrity_check({table})" if table else "PRAGMA integrity_check")
    )


def check_schema(connection: Connection) -> Iterator[Finding]:
    """Compare tables, indexes, triggers and views with those of a new store.

    A trigger that a new store lacks is wrong as well.
    """
    version = SCHEMA_VERSION.value(connection)
    if version != SCHEMA_HEAD:
        problem = f"the schema is {version}, it should be {SCHEMA_HEAD}"
        yield Finding("schema", "alembic_version", problem)
    objects, expected = (
        _load_schema_objects(connection),
        _build_schema_objects(connection.dialect.name),
    )
    for (kind, name), statement in expected.items():
        if (kind, name) not in objects:
            yield Finding("schema", f"{kind} {name}", "is missing")
        elif objects[kind, name] != statement:
            yield Finding("schema", f"{kind} {name}", "is not as the store made it")
    for kind, name in objects.keys() - expected.keys():
        if kind == "trigger":
            yield Finding("schema", f"trigger {name}", "is not one of the store's")


def _load_schema_objects(connection: Connection) -> SchemaObjects:
    """Return the objects of a schema, with their statements in single spaces."""
    rows = connection.execute(text(SCHEMA_OBJECTS[connection.dialect.name]))
    return {(kind, name): " ".join(statement.split()) for kind, name, statement in rows}


@cache
def _build_schema_objects(dialect: str) -> SchemaObjects:
    """Return the objects of a new store; of PostgreSQL's, the names of triggers and views."""
    with closing(Database(":memory:")) as database:
        upgrade_schema(database)
        with database.reading() as connection:
            objects = _load_schema_objects(connection)
    if dialect == "sqlite":
        return objects
    triggers = [
        ("trigger", name.format(table)) for name in SERVER_TRIGGERS for table in GUARDED_TABLES
    ]
    views = [(kind, name) for kind, name in objects if kind == "view"]
    return dict.fromkeys([*triggers, *views], "")


def check_seals(connection: Connection) -> Iterator[Finding]:
    """Yield the rows that differ from their seals; after damage, go on with the next table."""
    for table in SEALED_TABLES:
        columns = [table.c[name] for name in (*list_sealed_columns(table), SEAL_COLUMN)]
        try:
            with open_savepoint(connection):
                rows = connection.execute(select(*columns), execution_options=STREAM_OPTIONS)
                with closing(rows):
                    yield from _compare_seals(table, rows)
        except Exception as error:  # noqa: BLE001 - after any error the other tables are checked
            yield report_unchecked_place(table.name, error)


def check_table_seals(
    connection: Connection, table: Table, tree_id: int | None
) -> Iterator[Finding]:
    """Yield the rows of a table, of a tree or of all, that differ from their seals."""
    is_of_tree = tree_id is not None and "tree_id" in table.c
    values = {"tree_id": tree_id} if is_of_tree else {}
    rows = _select_sealed_rows(table, is_of_tree=is_of_tree).scan(connection, **values)
    return _compare_seals(table, rows)


@cache
def _select_sealed_rows(table: Table, *, is_of_tree: bool) -> Statement[Any]:
    rows = select(*(table.c[name] for name in (*list_sealed_columns(table), SEAL_COLUMN)))
    return Statement(rows.where(table.c.tree_id == bindparam("tree_id")) if is_of_tree else rows)


def _compare_seals(table: Table, rows: Iterable[Any]) -> Iterator[Finding]:
    names = list_sealed_columns(table)
    for *values, sealed in rows:
        try:
            is_sound = compute_seal(names, values) == sealed
        except (TypeError, ValueError):
            is_sound = False
        if not is_sound:
            row = dict(zip(names, values, strict=True))
            key = ", ".join(f"{key.name} {row[key.name]!r}" for key in table.primary_key)
            yield Finding("seal", f"{table.name}, {key}", "is not what was written")


def check_keys(connection: Connection, tree_id: int | None = None) -> Iterator[Finding]:
    """Yield the sessions, of a tree or of all, whose keys differ from those of their metadata."""
    rows = (
        connection.execute(_select_tree_metadata)
        if tree_id is None
        else METADATA_OF_TREE.rows(connection, tree_id=tree_id)
    )
    for tree, session_id, stored in rows:
        place = f"session {session_id!r}"
        try:
            metadata = decode_as(dict, stored) if stored else {}
        except Damaged:
            metadata = None
        stored_keys = STORED_KEYS.rows(connection, tree_id=tree, session_id=session_id)
        if metadata is None:
            yield Finding("facts", place, "its metadata are no JSON object")
        elif {*stored_keys} != {*derive_metadata_keys(metadata)}:
            yield Finding("facts", place, "its keys do not follow from its metadata")


class RowRule(NamedTuple):
    """A rule: the place and the problem of a breach, as formats, and the query that finds them."""

    where: str
    problem: str
    query: str

    def breaches(self, rows: Iterable[Any]) -> Iterator[Finding]:
        """Yield a finding for each row that the query found."""
        for row in rows:
            yield Finding("heads", self.where.format(*row), self.problem.format(*row))


@cache
def parse_rules() -> list[RowRule]:
    """Return the rules one by one."""
    parts = (each.partition("\n") for each in ROW_RULES.split("\n-- ")[1:])
    split = ((*comment.partition(": "), query) for comment, _, query in parts)
    return [RowRule(where, problem, query) for where, _, problem, query in split]


_LOOK_UPS = """WITH session_ids AS MATERIALIZED (SELECT id, tree_id FROM session_ids),
sessions AS MATERIALIZED (SELECT tree_id, id, head FROM sessions)
"""
"""Both sides of a comparison with the look-up of ids, each read by itself.

They may lie on different machines of a server, where no statement joins them.
"""


def build_store_query(rule: RowRule, dialect: str) -> str:
    """Return the query by which a rule is checked in the whole store."""
    is_compared = dialect != "sqlite" and "session_ids" in rule.query
    return f"{_LOOK_UPS}{rule.query}" if is_compared else rule.query


_RULE_TABLES = (
    *("session_ids", "sessions", "branches", "head_moves", "session_keys", "drafts"),
    *("compaction_records", "summaries", "redactions", "erasures"),
)


@cache
def _build_tree_rules(dialect: str) -> tuple[Statement[Row], list[tuple[RowRule, Statement[Any]]]]:
    """Return a statement for the numbers of the rules that a tree breaks, and one for each rule.

    Each query of all trees follows definitions of its tables that hold only the rows of the tree.
    """
    schema = "main." if dialect == "sqlite" else ""  # a bare name means the new one in SQLite
    of_tree = "{0} AS {2} (SELECT * FROM {1}{0} WHERE tree_id = :tree_id)"
    kept = {} if dialect == "sqlite" else {"session_ids": "MATERIALIZED"}
    tables = (
        of_tree.format(name, schema, kept.get(name, "NOT MATERIALIZED")) for name in _RULE_TABLES
    )
    begin = f"WITH {', '.join(tables)}"
    tests = (f"SELECT {at} WHERE EXISTS ({rule.query})" for at, rule in enumerate(parse_rules()))
    return Statement(text(f"{begin} {' UNION ALL '.join(tests)}")), [
        (rule, Statement(text(f"{begin} {rule.query}"))) for rule in parse_rules()
    ]


def check_tree_rules(connection: Connection, tree_id: int) -> Iterator[Finding]:
    """Yield the breaches of the rules between the rows of a tree."""
    broken, rules = _build_tree_rules(connection.dialect.name)
    for number in broken.values(connection, tree_id=tree_id):
        rule, found = rules[number]
        yield from rule.breaches(found.rows(connection, tree_id=tree_id))
