"""Whether the lines still hold what was stored, and their facts are what follows from it.

Every branch is read once, from its first position to its last. Five tables are read side by side in
the order of their keys, so that each message, its calls and all that was derived from it come by at
the same time, and nothing has to be kept. Messages are taken in runs, since the facts of many are
derived at once.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, groupby
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection, Select, Table, select, text, tuple_
from sqlalchemy.exc import DBAPIError

from ..database import Insertion, Row, Statement, messages, tool_calls
from ..errors import Damaged, StoreError
from ..history import (
    INSERT_FACTS,
    INSERT_PATHS,
    INSERT_RESULTS,
    LINE_TOTALS,
    PLACE,
    Line,
    LineTotals,
    MessageTokens,
    ResultRows,
    Segment,
    derive_results,
    lines,
    make_fact_rows,
)
from ..messages import (
    Columns,
    Message,
    PreparedMessage,
    StoredCall,
    assemble,
    find_digest_version,
    join_call,
)
from ..records import Finding
from ..tokens import estimate, message_tokens
from .branches import BRANCHES, Branch
from .erased_roots import follow_stored_root

RUN = 500
"""Messages whose facts are derived at once."""
OLDER = "older"
"""The name of the finding that tells what an earlier release did not hold fast; it is no damage."""
DATED = ("stored_at", "wire_format")
"""What the digest of a message holds beside what was given, since its version 2."""
STREAMING = {"stream_results": True, "max_row_buffer": 50}
DAMAGE = (sqlite3.Error, DBAPIError, StoreError)
"""What reading a damaged store raises: the database, or what decodes its rows."""

Key = tuple[int, ...]


@contextmanager
def resumable(connection: Connection) -> Iterator[None]:
    """Let a transaction go on after an error: a server refuses all else until it is taken back."""
    if connection.dialect.name == "sqlite":
        yield
        return
    with connection.begin_nested():
        yield


def unchecked(where: str, error: Exception) -> Finding:
    """Return the finding for a place that could not be checked, and why.

    An error that no database and no decoder raised tells nothing about the store.
    """
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    if isinstance(error, DAMAGE):
        return Finding("integrity", where, f"cannot be read to its end: {reason}")
    problem = f"this check could not run: {type(error).__name__}: {reason}"
    return Finding("unchecked", where, problem)


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


T = TypeVar("T")


class Streams(NamedTuple, Generic[T]):
    """What is read of each table side by side."""

    messages: T
    calls: T
    results: T
    paths: T
    measures: T


def _selected(table: Table, *names: str) -> Select[Any]:
    return select(*(table.c[name] for name in (*PLACE, *names)))


READ: Streams[Select[Any]] = Streams(
    _selected(messages, *Columns._fields, *DATED, "digest"),
    _selected(tool_calls, "position", *StoredCall._fields),
    INSERT_RESULTS.inserted(),
    INSERT_PATHS.inserted(),
    INSERT_FACTS.inserted(),
)
"""The columns of each stream; those of derived rows are the ones that are written."""


def _streams(connection: Connection, after: Key, opened: ExitStack) -> Streams[_Stream]:
    """Begin to read what stands behind a branch."""
    return Streams(*(_stream(connection, each, after, opened) for each in READ))


def _stream(
    connection: Connection,
    query: Select[Any],
    after: Key,
    opened: ExitStack,
) -> _Stream:
    (table,) = query.get_final_froms()
    branch = tuple_(table.c.tree_id, table.c.branch)
    behind = query.where(branch > tuple_(*after)).order_by(*table.primary_key)
    rows = connection.execute(behind, execution_options=STREAMING)
    return _Stream(opened.enter_context(closing(rows)))


def check_lines(connection: Connection) -> Iterator[Finding]:
    """Read every branch; after damage, go on with the branch behind it."""
    yield from _check_from(connection, _Place())


def check_tree(connection: Connection, tree_id: int) -> Iterator[Finding]:
    """Read every branch of a tree, as `check_lines` does."""
    yield from _check_from(connection, _Place(tree_id))


def _check_from(connection: Connection, place: _Place) -> Iterator[Finding]:
    while not place.is_at_end:
        try:
            with resumable(connection):
                yield from _check_branches(connection, place)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other branches are checked
            yield unchecked(place.name, error)
            place.is_at_end = place.is_at_end or not place.moved
    if place.older:
        problem = f"{place.older} messages have digests of version 1, without when they were stored"
        yield Finding(OLDER, "the store", problem)


class _Place:
    """How far the reading of branches has come: of all, or of a tree."""

    def __init__(self, tree_id: int | None = None) -> None:
        self.tree_id = tree_id
        self.after: Key = (-1 if tree_id is None else tree_id, -1)
        self.name = "the branches"
        self.moved = self.is_at_end = False
        self.older = 0


def _check_branches(connection: Connection, place: _Place) -> Iterator[Finding]:
    """Check the branches behind a place, moving it along; all are read from where it was."""
    start, place.name, place.moved = place.after, "the branches", False
    streams = None
    values = dict(zip(("tree_id", "branch"), start, strict=True))
    with ExitStack() as opened:
        rows = connection.execute(text(BRANCHES), values, execution_options=STREAMING)
        for row in opened.enter_context(closing(rows)):
            branch = Branch(*row)
            if place.tree_id not in (None, branch.tree_id):
                break
            place.after, place.name = (branch.tree_id, branch.branch), branch.place()
            place.moved = True
            streams = streams or _streams(connection, start, opened)
            yield from _check_branch(connection, branch, streams, place)
    place.is_at_end = True


def _check_branch(
    connection: Connection, branch: Branch, streams: Streams[_Stream], place: _Place
) -> Iterator[Finding]:
    """Check that a branch's positions follow on each other to its end, and what stands at each."""
    key, last = (branch.tree_id, branch.branch), branch.parent_position
    end = (*key, branch.tip or 0) if branch.is_open else key
    for rows in _runs(streams.messages.between(key, end)):
        run = _Run(branch, rows, streams.calls)
        if run.first != last + 1:
            yield _gap(branch, run.first, last)
        yield from _check_facts(connection, branch, streams, run)
        last = run.last
        place.older += run.older
    if last != branch.tip:
        problem = f"ends at {last}, its sessions and moves say {branch.tip}"
        yield Finding("positions", branch.place(), problem)


PARTS: Streams[Statement[Any]] = Streams(
    *(
        Statement(each.where(lines.in_run(table)).order_by(*table.primary_key))
        for each in READ
        for table in each.get_final_froms()
        if isinstance(table, Table)
    )
)
"""The same streams, of a run."""


def check_run(
    connection: Connection, branch: Branch, first: int, last: int
) -> Iterator[tuple[int, list[Finding]]]:
    """Yield what is wrong in the positions of a branch, each time with how far it was read."""
    key = (branch.tree_id, branch.branch)
    run = Segment(branch.branch, first, last).within(branch.tree_id)
    streams = Streams(*(_Stream(each.scan(connection, **run)) for each in PARTS))
    read = first - 1
    for rows in _runs(streams.messages.between((*key, first), (*key, last))):
        part = _Run(branch, rows, streams.calls)
        findings = [] if part.first == read + 1 else [_gap(branch, part.first, read)]
        findings += _check_facts(connection, branch, streams, part)
        read = part.last
        yield read, findings
    if read < min(last, branch.tip or 0):
        yield read, [_gap(branch, branch.tip, read)]


def _gap(branch: Branch, position: int | None, before: int) -> Finding:
    return Finding("positions", branch.place(position), f"follows on {before}")


def _runs(rows: Iterator[Row]) -> Iterator[Iterator[Row]]:
    """Yield rows in runs: positions that follow on each other, at most `RUN` of them."""
    for _, run in groupby(enumerate(rows), _number_of_run):
        yield (row for _, row in run)


def _number_of_run(numbered: tuple[int, Row]) -> tuple[int, int]:
    """Return what is the same for the rows of a run."""
    number, (_, _, seq, *_) = numbered
    return seq - number, number // RUN


class _Run:
    """Neighbouring messages of a branch, each compared with its digest as it is taken."""

    def __init__(self, branch: Branch, rows: Iterator[Row], calls: _Stream) -> None:
        self._branch, self._calls = branch, calls
        row = next(rows)
        self._rows = chain((row,), rows)
        _, _, self.first, *_ = row
        self.last = self.first
        self.older = 0
        self.findings: list[Finding] = []

    def doubt(self, problem: str) -> None:
        """Note a finding about the facts of the whole run."""
        self.findings.append(Finding("facts", self._branch.place(self.first), problem))

    def __iter__(self) -> Iterator[PreparedMessage]:
        for tree_id, branch, seq, *columns, stored_at, wire_format, digest in self._rows:
            self.last = seq
            place = (tree_id, branch, seq)
            numbered = [
                (position, StoredCall(*call))
                for _, _, _, position, *call in self._calls.between(place, place)
            ]
            calls = tuple(call for _, call in numbered)
            prepared = PreparedMessage(Columns(*columns), calls, _message(columns, calls), digest)
            version = find_digest_version(*prepared[:2], digest, stored_at, wire_format)
            self.older += version == 1
            if not (_is_counted_through(numbered) and version):
                where = self._branch.place(seq)
                self.findings.append(Finding("digest", where, "is not what was stored"))
            yield prepared


def _is_counted_through(numbered: list[tuple[int, StoredCall]]) -> bool:
    """Tell whether the positions of a message's calls are 0, 1, 2 and so on."""
    return [position for position, _ in numbered] == [*range(len(numbered))]


def _message(columns: list[Any], calls: tuple[StoredCall, ...]) -> Message:
    """Return the message that went in, {} where its columns no longer make one."""
    try:
        return assemble(columns, [join_call(*call) for call in calls] or None)
    except (Damaged, ValueError):
        return {}


def _check_facts(
    connection: Connection, branch: Branch, streams: Streams[_Stream], run: _Run
) -> Iterator[Finding]:
    """Compare what was derived from messages with what follows from the raw rows before them.

    Links and sums build on the stored facts of earlier messages: the first wrong one of a line is
    found by right ones.
    """
    weights: list[MessageTokens] = []
    line = Line(connection, branch.pointer())
    try:
        results, paths = _derived(line, run, weights)
    except Exception:
        yield from run.findings
        raise
    yield from run.findings
    span = [(branch.tree_id, branch.branch, seq) for seq in (run.first, run.last)]
    stored = [*streams.paths.between(*span)]
    if branch.session_id is None:
        results, paths = follow_stored_root(line, ResultRows(results, paths), stored)
    yield from _differences(branch, INSERT_RESULTS, results, streams.results.between(*span))
    yield from _differences(branch, INSERT_PATHS, paths, stored)
    before = _measure_before(line, run.first)
    measures = make_fact_rows(line.pointer, run.first, weights, before)
    yield from _differences(branch, INSERT_FACTS, measures, streams.measures.between(*span))


def _derived(line: Line, run: _Run, weights: list[MessageTokens]) -> ResultRows:
    """Return what follows from a run; note the weight of each of its messages, to the last."""
    prepared = _weighed(run, weights)
    try:
        return derive_results(line, run.first, prepared)
    except ValueError as error:
        run.doubt(f"cannot be derived: {error}")
        deque(prepared, 0)
        return ResultRows([], [])


def _weighed(
    run: Iterable[PreparedMessage], weights: list[MessageTokens]
) -> Iterator[PreparedMessage]:
    """Yield the messages of a run, noting the role and the estimated tokens of each."""
    for prepared in run:
        tokens = message_tokens(prepared.message, estimate)
        weights.append(MessageTokens(prepared.columns.role, tokens))
        yield prepared


def _measure_before(line: Line, first: int) -> LineTotals:
    """Return how far a line has come before a position, as its stored facts say."""
    before = first - 1
    for run in line.runs(max(1, before), before):
        place = {"tree_id": line.pointer.tree_id, "branch": run.branch, "seq": before}
        measure = LINE_TOTALS.row(line.connection, **place)
        if measure:
            return measure
    return LineTotals(0, 0)


def _differences(
    branch: Branch, written: Insertion, derived: Iterable[Row], stored: Iterable[Row]
) -> Iterator[Finding]:
    """Compare rows as they should have been written with those that are there, key by key."""
    should = _by_key(written, derived)
    are = _by_key(written, stored)
    for key in sorted(should.keys() | are.keys()):
        problem = _difference(written.columns, should.get(key), are.get(key))
        if problem:
            yield Finding("facts", f"{branch.place(key[2])}, {written.table.name}", problem)


def _by_key(written: Insertion, rows: Iterable[Row]) -> dict[Row, Row]:
    width = len(written.table.primary_key.columns)
    return {row[:width]: row for row in rows}


def _difference(
    names: Iterable[str],
    should: Row | None,
    stored: Row | None,
) -> str | None:
    """Say what is wrong with a row; None where nothing is."""
    if stored is None:
        return "is missing"
    if should is None:
        return "is there, but follows from nothing"
    wrong = ", ".join(_unequal(names, should, stored))
    if wrong:
        return f"does not follow from the messages: {wrong}"
    return None


def _unequal(names: Iterable[str], should: Row, stored: Row) -> Iterator[str]:
    """Yield the columns in which two rows differ."""
    for name, expected, found in zip(names, should, stored, strict=True):
        if expected != found:
            yield name
