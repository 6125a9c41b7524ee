"""Is everything still as it was stored? Reads the whole store once, in one state of it, and says what is not.

Nothing is trusted that can be worked out again: each message's SHA-256 from its rows, the facts of each tool result
from the raw rows of its line, the schema from a store made anew, positions and heads from the log of moves. The rows
are read in the order of their keys as a few streams side by side, so any store fits in memory. Damage is an answer
here, never an error: what cannot be read is named, and reading goes on with the next branch.

Nothing can be told about values that nothing else in the store depends on: when a message was stored, titles, metadata,
token counts, the texts of summaries.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, select, text, tuple_
from sqlalchemy.exc import DBAPIError

from . import lines
from .engine import Database
from .facts import MEASURE, Measure, ResultRows, derive, message_rows
from .invariants import RULES
from .lines import Pointer
from .messages import Prepared, StoredCall, assemble, digest_of, join_call
from .migrate import VERSION, upgrade
from .records import Finding
from .schema import HEAD, RAW_TABLES, message_facts, messages, tool_calls, tool_result_paths, tool_results
from .statements import Row
from .tokens import estimate, message_tokens

LIMIT = 1_000
"""Findings that are listed; a damaged index alone could give one for each row."""
RUN = 500
"""Messages whose facts are derived at once."""
STREAMING = {"stream_results": True, "max_row_buffer": 50}
DAMAGE = (sqlite3.Error, DBAPIError, TypeError, ValueError)
"""What reading a damaged store may raise: from the database, or from values of types that no column has."""

Key = tuple[int, ...]


def verify(connection: Connection) -> list[Finding]:
    """Check everything that can be checked and return what is wrong, at most 1,000 findings; [] means all is well.

    Changes nothing. Takes as long as reading every message once.
    """
    checks = (("integrity", _integrity), ("schema", _schema), ("rules", _rules), ("lines", _lines))
    findings = chain.from_iterable(_guarded(name, check(connection)) for name, check in checks)
    if connection.dialect.name != "sqlite":
        return _listed(findings)
    driver: Any = connection.connection.driver_connection
    driver.text_factory = lambda value: value.decode(errors="replace")  # damaged text is to be read, and found wrong
    try:
        return _listed(findings)
    finally:
        driver.text_factory = str


def _listed(findings: Iterator[Finding]) -> list[Finding]:
    listed = list(islice(findings, LIMIT))
    if next(findings, None):
        listed.append(Finding("limit", "the store", f"there is more; only {LIMIT:,} findings are listed"))
    return listed


def _guarded(name: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    try:
        yield from findings
    except DAMAGE as error:
        yield Finding("integrity", f"check of {name}", _unreadable(error))


def _unreadable(error: Exception) -> str:
    return f"cannot be read to its end: {' '.join(str(getattr(error, 'orig', None) or error).split())}"


def _integrity(connection: Connection) -> Iterator[Finding]:
    """Let SQLite check its own structures; a server does so itself, and keeps its foreign keys."""
    if connection.dialect.name != "sqlite":
        return
    for (problem,) in connection.execute(text("PRAGMA integrity_check")):
        if problem != "ok":
            yield Finding("integrity", "the file", problem)
    for table, rowid, parent, _ in connection.execute(text("PRAGMA foreign_key_check")):
        yield Finding("orphan", f"{table}, row {rowid}", f"what it belongs to is not in {parent}")


SCHEMA_OBJECTS = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL",
    "postgresql": """
SELECT 'trigger', t.tgname, '' FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
UNION ALL SELECT 'view', viewname, '' FROM pg_views WHERE schemaname = current_schema()""",
}
SERVER_TRIGGERS = ("{}_no_change", "{}_no_truncate")


def _schema(connection: Connection) -> Iterator[Finding]:
    """Compare tables, indexes, triggers and views with those of a store made anew; more triggers are wrong as well."""
    row = VERSION.row(connection)
    if row != (HEAD,):
        yield Finding("schema", "alembic_version", f"the schema is {row and row[0]}, it should be {HEAD}")
    found, expected = _objects(connection), _expected(connection.dialect.name)
    for (kind, name), statement in expected.items():
        if (kind, name) not in found:
            yield Finding("schema", f"{kind} {name}", "is missing")
        elif found[kind, name] != statement:
            yield Finding("schema", f"{kind} {name}", "is not as the store made it")
    for kind, name in found.keys() - expected.keys():
        if kind == "trigger":
            yield Finding("schema", f"trigger {name}", "is not one of the store's")


def _objects(connection: Connection) -> dict[tuple[str, str], str]:
    rows = connection.execute(text(SCHEMA_OBJECTS[connection.dialect.name]))
    return {(kind, name): statement for kind, name, statement in rows}


@cache
def _expected(dialect: str) -> dict[tuple[str, str], str]:
    """Return what a new store has; of PostgreSQL's, the names of the triggers and views."""
    database = Database(":memory:")
    try:
        upgrade(database)
        with database.reading() as connection:
            objects = _objects(connection)
    finally:
        database.close()
    if dialect == "sqlite":
        return objects
    triggers = [("trigger", name.format(table)) for name in SERVER_TRIGGERS for table in RAW_TABLES]
    return dict.fromkeys([*triggers, *((kind, name) for kind, name in objects if kind == "view")], "")


def _rules(connection: Connection) -> Iterator[Finding]:
    for rule in RULES.split("\n-- ")[1:]:
        told, _, query = rule.partition("\n")
        where, _, problem = told.partition(": ")
        for row in connection.execute(text(query)):
            yield Finding("heads", where.format(*row), problem.format(*row))


class _Branch(NamedTuple):
    """A branch and where it ends: at a head, where a move left it, or where an erasure cut it off.

    The project root and the case rule are those of any session of the tree: a fork takes over both, nothing changes
    them, so they are known even for a branch whose own session was erased.
    """

    tree_id: int
    branch: int
    parent_position: int
    session_id: str | None
    tip: int | None
    project_root: str | None
    fold_case: int | None

    def place(self, position: int | None = None) -> str:
        """Return the place of a finding."""
        owner = f"tree {self.tree_id}" if self.session_id is None else f"session {self.session_id!r}"
        return f"{owner}, branch {self.branch}" + ("" if position is None else f", position {position}")

    def pointer(self) -> Pointer:
        """Return the branch as its session would see it from its end."""
        place = (self.tree_id, self.session_id or "", self.branch, self.tip or 0, self.parent_position)
        return Pointer(*place, None, self.project_root, self.fold_case or 0, None, None)


BRANCHES = """
SELECT b.tree_id, b.branch, b.parent_position, b.session_id,
    CASE WHEN b.session_id IS NULL THEN (
        SELECT kept FROM erasures e WHERE e.tree_id = b.tree_id AND e.branch = b.branch ORDER BY erasure DESC LIMIT 1
    ) WHEN s.head_branch = b.branch THEN s.head ELSE (
        SELECT MAX(m.from_position) FROM head_moves m
        WHERE m.tree_id = b.tree_id AND m.session_id = b.session_id AND m.from_branch = b.branch AND m.kind <> 'fork'
    ) END, o.project_root, o.fold_case
FROM branches b LEFT JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id
LEFT JOIN sessions o ON o.tree_id = b.tree_id AND o.id = (SELECT MIN(id) FROM sessions WHERE tree_id = b.tree_id)
WHERE (b.tree_id, b.branch) > (:tree_id, :branch) ORDER BY b.tree_id, b.branch
"""


class _Stream:
    """Rows in the order of their keys, taken a range at a time."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows: Iterator[Row] = map(tuple, rows)
        self._waiting: Row | None = None

    def between(self, first: Key, last: Key) -> Iterator[Row]:
        """Yield the rows from one key to another; what stands before them is dropped."""
        while row := self._waiting or next(self._rows, None):
            self._waiting = row
            if row[: len(last)] > last:
                return
            self._waiting = None
            if row[: len(first)] >= first:
                yield row


class _Streams(NamedTuple):
    messages: _Stream
    calls: _Stream
    results: _Stream
    paths: _Stream
    measures: _Stream


def _streams(connection: Connection, after: Key, opened: ExitStack) -> _Streams:
    """Begin to read what stands behind a branch."""
    tables = (messages, tool_calls, tool_results, tool_result_paths, message_facts)
    behind = [select(table).where(tuple_(table.c.tree_id, table.c.branch) > tuple_(*after)) for table in tables]
    ordered = [each.order_by(*table.primary_key) for each, table in zip(behind, tables, strict=True)]
    found = [connection.execute(each, execution_options=STREAMING) for each in ordered]
    return _Streams(*(_Stream(opened.enter_context(closing(rows))) for rows in found))


def _lines(connection: Connection) -> Iterator[Finding]:
    """Read every branch; after damage, go on with the branch behind it."""
    after: Key | None = (-1, 0)
    while after:
        start, after, streams = after, None, None
        values = {"tree_id": start[0], "branch": start[1]}
        try:
            with ExitStack() as opened:
                rows = connection.execute(text(BRANCHES), values, execution_options=STREAMING)
                for row in opened.enter_context(closing(rows)):
                    branch = _Branch(*row)
                    after = (branch.tree_id, branch.branch)
                    streams = streams or _streams(connection, start, opened)
                    yield from _branch(connection, branch, streams)
            return
        except DAMAGE as error:
            yield Finding("integrity", branch.place() if after else "the branches", _unreadable(error))


def _branch(connection: Connection, branch: _Branch, streams: _Streams) -> Iterator[Finding]:
    """Check that a branch's positions follow on each other to where it ends, and what stands at each."""
    key, last = (branch.tree_id, branch.branch), branch.parent_position
    numbered = enumerate(streams.messages.between(key, key))
    for _, group in groupby(numbered, lambda each: (each[1][2] - each[0], each[0] // RUN)):
        run = _Run(branch, (row for _, row in group), streams.calls)
        if run.first != last + 1:
            yield Finding("positions", branch.place(run.first), f"follows on {last}")
        yield from _facts(connection, branch, streams, run)
        last = run.last
    if last != branch.tip:
        yield Finding("positions", branch.place(), f"ends at {last}, its sessions and moves say {branch.tip}")


class _Run:
    """Neighbouring messages of a branch, each compared with its digest as it is taken."""

    def __init__(self, branch: _Branch, rows: Iterator[Row], calls: _Stream) -> None:
        self._branch, self._calls = branch, calls
        row = next(rows)
        self._rows = chain((row,), rows)
        self.first = self.last = int(row[2])
        self.findings: list[Finding] = []

    def __iter__(self) -> Iterator[Prepared]:
        for row in self._rows:
            tree_id, branch, self.last, *columns = row
            place = (tree_id, branch, self.last)
            rows = list(self._calls.between(place, place))
            prepared = _prepared(columns, tuple(StoredCall(*call[4:]) for call in rows))
            dense = [call[3] for call in rows] == list(range(len(rows)))
            if not (dense and _matches(prepared)):
                self.findings.append(Finding("digest", self._branch.place(self.last), "is not what was stored"))
            yield prepared


def _prepared(row: list[Any], calls: tuple[StoredCall, ...]) -> Prepared:
    """Return a message as facts are derived from it."""
    role, name, status, call_id, _, created_at, _, message_id, digest, extra, form, content = row
    columns = (role, name, status, call_id, created_at, message_id, extra, form, content)
    try:
        message = assemble(columns, [join_call(*call) for call in calls] or None)
    except ValueError:
        message = {}
    return Prepared(*columns[:6], digest, *columns[6:], calls, message)


def _matches(prepared: Prepared) -> bool:
    """Tell whether a message's rows still have the digest that was stored with them."""
    columns = (*prepared[:6], *prepared[7:10])
    try:
        return digest_of(columns, prepared.calls) == prepared.digest
    except (TypeError, ValueError):
        return False


def _facts(connection: Connection, branch: _Branch, streams: _Streams, run: _Run) -> Iterator[Finding]:
    """Compare what was derived from messages with what follows from the raw rows before them.

    Links and sums build on the stored facts of earlier messages: the first wrong one of a line is found by right ones.
    """
    weights: list[tuple[str, int]] = []
    messages = _weighed(run, weights)
    results, paths = ResultRows([], [])
    try:
        results, paths = derive(connection, branch.pointer(), run.first, messages)
    except ValueError as error:
        run.findings.append(Finding("facts", branch.place(run.first), f"cannot be derived: {error}"))
        deque(messages, 0)
    except DAMAGE:
        yield from run.findings
        raise
    yield from run.findings
    span = [(branch.tree_id, branch.branch, seq) for seq in (run.first, run.last)]
    yield from _differences(branch, tool_results, results, streams.results.between(*span))
    yield from _differences(branch, tool_result_paths, paths, streams.paths.between(*span))
    before = _before(connection, branch, run.first)
    should = message_rows(branch.pointer(), run.first, weights, before)
    yield from _differences(branch, message_facts, should, streams.measures.between(*span))


def _weighed(run: Iterable[Prepared], weights: list[tuple[str, int]]) -> Iterator[Prepared]:
    """Yield the messages of a run, noting the role and the estimated tokens of each."""
    for prepared in run:
        weights.append((prepared.role, message_tokens(prepared.message, estimate)))
        yield prepared


def _before(connection: Connection, branch: _Branch, first: int) -> Measure:
    """Return how far a line has come before a position, as its stored facts say."""
    pointer = branch.pointer()
    for segment in lines.segments(connection, pointer, first - 1, first - 1) if first > 1 else []:
        row = MEASURE.row(connection, tree_id=pointer.tree_id, branch=segment.branch, seq=first - 1)
        if row:
            return Measure._make(row)
    return Measure(0, 0)


def _differences(branch: _Branch, table: Table, derived: Iterable[Row], stored: Iterable[Row]) -> Iterator[Finding]:
    width = len(table.primary_key.columns)
    should, are = ({row[:width]: row for row in rows} for rows in (derived, stored))
    for key in sorted(should.keys() | are.keys()):
        if key not in are:
            problem = "is missing"
        elif key not in should:
            problem = "is there, but follows from nothing"
        elif should[key] != are[key]:
            names = [name for name, a, b in zip(table.c.keys(), should[key], are[key], strict=True) if a != b]
            problem = f"does not follow from the messages: {', '.join(names)}"
        else:
            continue
        yield Finding("facts", f"{branch.place(key[2])}, {table.name}", problem)
