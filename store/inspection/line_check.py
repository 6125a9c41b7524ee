"""The checks of lines: messages against their digests, and facts against the messages.

Every branch is read once, from its first position to its last. Five tables are read in parallel in
the order of their keys, so that each message, its calls and all its derived rows arrive at the
same time, and nothing has to be kept. Messages are read in runs, since the facts of many messages
are derived at once.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from itertools import chain, groupby
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection, Select, Table, select, text, tuple_

from ..database import Insertion, Row, Statement, messages, tool_calls
from ..errors import Damaged
from ..history import (
    INSERT_FACTS,
    INSERT_PATHS,
    INSERT_RESULTS,
    LINE_TOTALS,
    PLACE,
    Line,
    LineTotals,
    MessageTokens,
    Pointer,
    ResultRows,
    Segment,
    build_fact_rows,
    derive_results,
    facts,
    lines,
)
from ..messages import (
    Columns,
    PreparedMessage,
    StoredCall,
    assemble_message,
    find_digest_version,
    join_call,
)
from ..records import Finding
from ..tokens import count_message_tokens, estimate
from .checks import OLDER, STREAM_OPTIONS, open_savepoint, report_unchecked_place

RUN_LENGTH = 500
"""Messages whose facts are derived at once."""
MOST_ROOTS = 8
"""Roots that are tried for a run of messages: those that fit the most results."""
DATED_COLUMNS = ("stored_at", "wire_format")
"""The columns that the digest of a message covers since its version 2, besides the given ones."""

KeyPrefix = tuple[int, ...]


class BranchEnd(NamedTuple):
    """A branch and its end: a head, the position that a move left, or the cut of an erasure.

    Messages that an open erasure still has to delete are not read (``is_open``). The project root
    is that of the branch's session. The root of an erased session is unknown, but mostly it is that
    of any session of the tree, as the case rule always is: a fork inherits both, unless it is
    handed over to another owner, whose root may differ.
    """

    tree_id: int
    branch: int
    parent_position: int
    session_id: str | None
    tip: int | None
    is_open: bool
    project_root: str | None
    fold_case: int | None

    def place(self, position: int | None = None) -> str:
        """Return the place of a finding."""
        owner = f"session {self.session_id!r}" if self.session_id else f"tree {self.tree_id}"
        where = f"{owner}, branch {self.branch}"
        return where if position is None else f"{where}, position {position}"

    def pointer(self) -> Pointer:
        """Return a pointer to the branch as seen by its session from its end."""
        return Pointer(
            tree_id=self.tree_id,
            session_id=self.session_id or "",
            branch=self.branch,
            head=self.tip or 0,
            parent_position=self.parent_position,
            last_rewind=None,
            project_root=self.project_root,
            fold_case=self.fold_case or 0,
            head_turn=None,
            head_tokens=None,
            revision="",
        )


_BRANCH_ENDS = """
SELECT b.tree_id, b.branch, b.parent_position, b.session_id,
    CASE
        WHEN b.session_id IS NULL THEN (
            SELECT kept FROM erasures e
            WHERE e.tree_id = b.tree_id AND e.branch = b.branch
            ORDER BY erasure DESC LIMIT 1
        )
        WHEN s.head_branch = b.branch THEN s.head
        ELSE (
            SELECT MAX(m.from_position) FROM head_moves m
            WHERE m.tree_id = b.tree_id AND m.session_id = b.session_id
                AND m.from_branch = b.branch AND m.kind <> 'fork'
        )
    END,
    EXISTS (
        SELECT 1 FROM erasures e
        WHERE e.tree_id = b.tree_id AND e.branch = b.branch AND e.finished_at IS NULL
    ),
    CASE WHEN s.id IS NULL THEN o.project_root ELSE s.project_root END, o.fold_case
FROM branches b
LEFT JOIN sessions s ON s.tree_id = b.tree_id AND s.id = b.session_id
LEFT JOIN sessions o ON o.tree_id = b.tree_id
    AND o.id = (SELECT MIN(id) FROM sessions WHERE tree_id = b.tree_id)
"""
BRANCHES_AFTER = f"""{_BRANCH_ENDS}
WHERE (b.tree_id, b.branch) > (:tree_id, :branch)
ORDER BY b.tree_id, b.branch
"""
"""The branches after one, in the order of their keys."""
BRANCH_END = Statement(
    text(
        f"""{_BRANCH_ENDS.replace("= b.tree_id", "= :tree_id")}
WHERE b.tree_id = :tree_id AND b.branch = :branch"""
    ),
    row=BranchEnd,
)
"""One branch of a tree."""


class RowStream:
    """Rows in the order of their keys, taken a range at a time."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows: Iterator[Row] = map(tuple, rows)
        self._waiting: Row | None = None

    def between(self, first: KeyPrefix, last: KeyPrefix) -> Iterator[Row]:
        """Yield the rows from one key to another; rows before them are dropped."""
        while row := self._waiting or next(self._rows, None):
            self._waiting = row
            if row[: len(last)] > last:
                return
            self._waiting = None
            if row[: len(first)] >= first:
                yield row


TablePartT = TypeVar("TablePartT")


class TableStreams(NamedTuple, Generic[TablePartT]):
    """The rows of each table, read side by side."""

    messages: TablePartT
    calls: TablePartT
    results: TablePartT
    paths: TablePartT
    measures: TablePartT


def _select_columns(table: Table, *names: str) -> Select[Any]:
    return select(*(table.c[name] for name in (*PLACE, *names)))


TABLE_QUERIES: TableStreams[Select[Any]] = TableStreams(
    _select_columns(messages, *Columns._fields, *DATED_COLUMNS, "digest"),
    _select_columns(tool_calls, "position", *StoredCall._fields),
    INSERT_RESULTS.inserted(),
    INSERT_PATHS.inserted(),
    INSERT_FACTS.inserted(),
)
"""The columns of each stream; of derived rows, the written columns."""


def check_lines(connection: Connection) -> Iterator[Finding]:
    """Read every branch; after damage, go on with the next branch."""
    yield from _check_from(connection, ReadPlace())


def check_tree(connection: Connection, tree_id: int) -> Iterator[Finding]:
    """Read every branch of a tree, as `check_lines` does."""
    yield from _check_from(connection, ReadPlace(tree_id))


def _check_from(connection: Connection, place: ReadPlace) -> Iterator[Finding]:
    while not place.is_at_end:
        try:
            with open_savepoint(connection):
                start, place.name, place.moved = place.after, "the branches", False
                streams: TableStreams[RowStream] | None = None
                values = dict(zip(("tree_id", "branch"), start, strict=True))
                with ExitStack() as opened:
                    rows = connection.execute(
                        text(BRANCHES_AFTER), values, execution_options=STREAM_OPTIONS
                    )
                    for row in opened.enter_context(closing(rows)):
                        branch = BranchEnd(*row)
                        if place.tree_id not in (None, branch.tree_id):
                            break
                        place.after, place.name = (branch.tree_id, branch.branch), branch.place()
                        place.moved = True
                        streams = streams or TableStreams(
                            *(
                                _open_stream(connection, query, start, opened)
                                for query in TABLE_QUERIES
                            )
                        )
                        yield from _check_branch(connection, branch, streams, place)
                place.is_at_end = True
        except Exception as error:  # noqa: BLE001 - after any error the other branches are checked
            yield report_unchecked_place(place.name, error)
            place.is_at_end = place.is_at_end or not place.moved
    if place.older:
        problem = f"{place.older} messages have digests of version 1, without when they were stored"
        yield Finding(OLDER, "the store", problem)


class ReadPlace:
    """The place up to which branches were read: of all, or of a tree."""

    def __init__(self, tree_id: int | None = None) -> None:
        self.tree_id = tree_id
        self.after: KeyPrefix = (-1 if tree_id is None else tree_id, -1)
        self.name = "the branches"
        self.moved = self.is_at_end = False
        self.older = 0


def _open_stream(
    connection: Connection, query: Select[Any], after: KeyPrefix, opened: ExitStack
) -> RowStream:
    """Begin to read the rows of a table after a branch."""
    (table,) = query.get_final_froms()
    is_after = tuple_(table.c.tree_id, table.c.branch) > tuple_(*after)
    ordered = query.where(is_after).order_by(*table.primary_key)
    rows = connection.execute(ordered, execution_options=STREAM_OPTIONS)
    return RowStream(opened.enter_context(closing(rows)))


def _check_branch(
    connection: Connection, branch: BranchEnd, streams: TableStreams[RowStream], place: ReadPlace
) -> Iterator[Finding]:
    """Check each message of a branch, and that its positions have no gap up to its end."""
    key, last = (branch.tree_id, branch.branch), branch.parent_position
    end = (*key, branch.tip or 0) if branch.is_open else key
    for rows in _split_runs(streams.messages.between(key, end)):
        run = MessageRun(branch, rows, streams.calls)
        if run.first != last + 1:
            yield _report_gap(branch, run.first, last)
        yield from _check_facts(connection, branch, streams, run)
        last = run.last
        place.older += run.older
    if last != branch.tip:
        problem = f"ends at {last}, its sessions and moves say {branch.tip}"
        yield Finding("positions", branch.place(), problem)


RUN_QUERIES: TableStreams[Statement[Any]] = TableStreams(
    *(
        Statement(each.where(lines.match_run(table)).order_by(*table.primary_key))
        for each in TABLE_QUERIES
        for table in each.get_final_froms()
        if isinstance(table, Table)
    )
)
"""The same streams, of a run."""


def check_run(
    connection: Connection, branch: BranchEnd, first: int, last: int
) -> Iterator[tuple[int, list[Finding]]]:
    """Yield the findings in the positions of a branch, each time with the last position read."""
    key = (branch.tree_id, branch.branch)
    run = Segment(branch.branch, first, last).within(branch.tree_id)
    streams = TableStreams(*(RowStream(each.scan(connection, **run)) for each in RUN_QUERIES))
    read = first - 1
    for rows in _split_runs(streams.messages.between((*key, first), (*key, last))):
        part = MessageRun(branch, rows, streams.calls)
        findings = [] if part.first == read + 1 else [_report_gap(branch, part.first, read)]
        findings += _check_facts(connection, branch, streams, part)
        read = part.last
        yield read, findings
    if read < min(last, branch.tip or 0):
        yield read, [_report_gap(branch, branch.tip, read)]


def _report_gap(branch: BranchEnd, position: int | None, before: int) -> Finding:
    return Finding("positions", branch.place(position), f"follows on {before}")


def _split_runs(rows: Iterator[Row]) -> Iterator[Iterator[Row]]:
    """Yield rows in runs of consecutive positions, at most `RUN_LENGTH` of them."""
    # Consecutive positions differ from their row numbers by the same amount.
    numbered = groupby(
        enumerate(rows), key=lambda each: (each[1][2] - each[0], each[0] // RUN_LENGTH)
    )
    for _, run in numbered:
        yield (row for _, row in run)


class MessageRun:
    """Neighbouring messages of a branch, each compared with its digest as it is taken."""

    def __init__(self, branch: BranchEnd, rows: Iterator[Row], calls: RowStream) -> None:
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
            numbers, calls = [], []
            for _, _, _, number, *call in self._calls.between(place, place):
                numbers.append(number)
                calls.append(StoredCall(*call))
            try:
                message = assemble_message(columns, [join_call(*call) for call in calls] or None)
            except (Damaged, ValueError):
                message = {}  # its columns no longer form a message
            prepared = PreparedMessage(Columns(*columns), tuple(calls), message, digest)
            version = find_digest_version(*prepared[:2], digest, stored_at, wire_format)
            self.older += version == 1
            if not version or numbers != [*range(len(numbers))]:
                where = self._branch.place(seq)
                self.findings.append(Finding("digest", where, "is not what was stored"))
            yield prepared


def _check_facts(
    connection: Connection, branch: BranchEnd, streams: TableStreams[RowStream], run: MessageRun
) -> Iterator[Finding]:
    """Compare the stored facts of messages with those derived from the raw rows before them.

    Links and sums build on the stored facts of earlier messages, so the first wrong fact of a line
    is found by means of correct ones.
    """
    tokens: list[MessageTokens] = []
    line = Line(connection, branch.pointer())
    try:
        results, paths = _derive_run(line, run, tokens)
    except Exception:
        yield from run.findings
        raise
    yield from run.findings
    span = [(branch.tree_id, branch.branch, seq) for seq in (run.first, run.last)]
    stored = [*streams.paths.between(*span)]
    if branch.session_id is None:
        results, paths = _derive_by_stored_root(line, ResultRows(results, paths), stored)
    yield from _compare_rows(branch, INSERT_RESULTS, results, streams.results.between(*span))
    yield from _compare_rows(branch, INSERT_PATHS, paths, stored)
    before = _load_totals_before(line, run.first)
    measures = build_fact_rows(line.pointer, run.first, tokens, before)
    yield from _compare_rows(branch, INSERT_FACTS, measures, streams.measures.between(*span))


def _derive_run(line: Line, run: MessageRun, tokens: list[MessageTokens]) -> ResultRows:
    """Return the rows that follow from a run; add the tokens of each of its messages."""

    def prepared_messages() -> Iterator[PreparedMessage]:
        for prepared in run:
            estimated = count_message_tokens(prepared.message, estimate)
            tokens.append(MessageTokens(prepared.columns.role, estimated))
            yield prepared

    messages = prepared_messages()
    try:
        return derive_results(line, run.first, messages)
    except ValueError as error:
        run.doubt(f"cannot be derived: {error}")
        deque(messages, 0)  # compare the rest with its digests, and count its tokens
        return ResultRows([], [])


def _load_totals_before(line: Line, first: int) -> LineTotals:
    """Return the totals of a line before a position, from its stored facts."""
    before = first - 1
    for run in line.runs(max(1, before), before):
        place = {"tree_id": line.pointer.tree_id, "branch": run.branch, "seq": before}
        measure = LINE_TOTALS.row(line.connection, **place)
        if measure:
            return measure
    return LineTotals(0, 0)


def _compare_rows(
    branch: BranchEnd, written: Insertion, derived: Iterable[Row], stored: Iterable[Row]
) -> Iterator[Finding]:
    """Compare derived rows with the stored ones, key by key."""
    width = len(written.table.primary_key.columns)
    expected_rows = {row[:width]: row for row in derived}
    stored_rows = {row[:width]: row for row in stored}
    for key in sorted(expected_rows.keys() | stored_rows.keys()):
        expected, found = expected_rows.get(key), stored_rows.get(key)
        if found is None:
            problem = "is missing"
        elif expected is None:
            problem = "is there, but follows from nothing"
        else:
            values = zip(written.columns, expected, found, strict=True)
            wrong = ", ".join(name for name, one, other in values if one != other)
            if not wrong:
                continue
            problem = f"does not follow from the messages: {wrong}"
        yield Finding("facts", f"{branch.place(key[2])}, {written.table.name}", problem)


# The project root of an erased session, inferred from the stored paths of its branch:
#
# Paths are stored relative to the root of the session in which they were read. A branch outlives
# its session if forks continue it, and the root is deleted with the session. Forks mostly have the
# same root; a fork that was handed over to another owner may have another. So if the paths of such
# a branch do not follow from its calls and the root of a fork, other roots are tried: an absolute
# path of a call, without the relative path that is stored with its result.


def _derive_by_stored_root(line: Line, derived: ResultRows, stored: list[Row]) -> ResultRows:
    """Return the rows of a run, derived by the root that explains its stored paths best."""
    stored_paths = {*stored}
    if {*derived.paths} == stored_paths:
        return derived
    absolute = _derive_by_root(line, None, derived)
    likely = Counter(_list_possible_roots(absolute.paths, stored)).most_common(MOST_ROOTS)
    by_roots = [_derive_by_root(line, root, derived) for root, _ in likely]
    return min((derived, absolute, *by_roots), key=lambda rows: len({*rows.paths} ^ stored_paths))


def _derive_by_root(line: Line, root: str | None, derived: ResultRows) -> ResultRows:
    """Return derived rows with their paths, and whether these are all, by a root."""
    rooted = Line(line.connection, line.pointer._replace(project_root=root))
    rows = ResultRows([], [])
    for row in derived.results:
        *place, call_seq, call_position = row[:5]
        if call_seq is None:
            rows.results.append(row)
            continue
        answer = facts.AnsweringResult(row[2], call_seq, call_position, row[-1])
        paths, complete = facts.find_result_paths(rooted, answer)
        rows.results.append((*row[:-1], int(complete)))
        rows.paths.extend((*place, *each) for each in paths)
    return rows


def _list_possible_roots(absolute: Iterable[Row], stored: Iterable[Row]) -> Iterator[str]:
    """Yield the roots that would turn an absolute path into a stored one."""
    there: dict[Row, set[str]] = {}
    for *place, path, _, _, _, _ in stored:
        there.setdefault((*place,), set()).add(path)
    for *place, path, _, _, _, _ in absolute:
        known = there.get((*place,), set())
        if "." in known:
            yield path
        for slash in re.finditer("/", path):
            below = path[slash.end() :]
            if below in known or f"./{below}" in known:
                yield path[: slash.end()]
