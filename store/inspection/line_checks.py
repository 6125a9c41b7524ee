"""Checks of lines: messages against their digests, facts against messages; also at reads.

Every branch is read once, from its first position to its last. Five tables are read in parallel in
the order of their keys, so that each message, its calls and all its derived rows arrive together,
and nothing has to be kept. Messages are read in runs, since the facts of many are derived at once.

`verify` reads a whole store; this check compares only the rows that a query names: the messages of
a run with their digests, their facts with facts derived from the messages, sealed rows with their
seals, and the head of a session with its moves. It recognises these rows by the tables in the text
of the query, and by the parameters that all statements use for a place, a run or a line. So no
statement has to ask for the check.

Messages and sealed rows are compared at each read, since a caller receives them. Deriving facts
costs far more than reading them, so an open store compares those of a position once, with their
message. The rules between the rows of a tree are checked again after one of its sessions has
changed. A row that SQLite no longer finds has no seal, so the structure of a table with seals is
checked once.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from functools import lru_cache
from itertools import chain, groupby
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection, Select, Table, bindparam, select, text, tuple_

from ..database import (
    BIG_INTEGER,
    SEALED_TABLES,
    Insertion,
    Row,
    Statement,
    messages,
    sessions,
    tool_calls,
    tool_kinds,
)
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
    raw_messages,
    restore_calls,
    restore_messages,
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
from .checks import (
    OLDER,
    STREAM_OPTIONS,
    check_keys,
    check_kinds,
    check_pages,
    check_table_seals,
    check_tree_rules,
    open_savepoint,
    report_unchecked_place,
    require_sound,
)
from .row_pages import TreePages

RUN_LENGTH = 500
"""Messages whose facts are derived at once."""
MOST_ROOTS = 8
"""Roots that are tried for a run of messages: those that fit the most results."""
DATED_COLUMNS = ("stored_at", "wire_format")
"""The columns that the digest of a message covers since its version 2, besides the given ones."""

KeyPrefix = tuple[int, ...]

DIGESTED_TABLES = frozenset({"messages", "tool_calls"})
"""The tables that are covered by digests."""
DERIVED_TABLES = frozenset({"message_facts", "tool_results", "tool_result_paths"})
"""The tables that are derived from these."""
SEALED_BY_NAME = {table.name: table for table in SEALED_TABLES}
CHECKED_TABLES = DIGESTED_TABLES | DERIVED_TABLES | SEALED_BY_NAME.keys() | {tool_kinds.name}
MOST_REMEMBERED = 10_000
"""Compared branches and trees that an open store remembers."""

TREE_STATE = Statement(
    select(sessions.c.id, sessions.c.revision)
    .where(sessions.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER))
    .order_by(sessions.c.id)
)
MESSAGE_PLACES = Statement(
    select(messages.c.tree_id, messages.c.branch, messages.c.seq).where(
        messages.c.message_id == bindparam("message_id")
    )
)


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
        WHEN s.head_branch = b.branch THEN s.head
        ELSE COALESCE((
            SELECT MAX(m.from_position) FROM head_moves m
            WHERE m.tree_id = b.tree_id AND m.session_id = b.session_id
                AND m.from_branch = b.branch AND m.kind <> 'fork'
        ), (
            SELECT kept FROM erasures e
            WHERE e.tree_id = b.tree_id AND e.branch = b.branch
            ORDER BY erasure DESC LIMIT 1
        ))
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
_TREE_BRANCH_ENDS = _BRANCH_ENDS.replace("= b.tree_id", "= :tree_id") + "WHERE b.tree_id = :tree_id"
BRANCH_END = Statement(text(f"{_TREE_BRANCH_ENDS} AND b.branch = :branch"), row=BranchEnd)
"""One branch of a tree."""
TREE_BRANCH_ENDS = Statement(text(f"{_TREE_BRANCH_ENDS} ORDER BY b.branch"), row=BranchEnd)


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
_queried_tables: list[Any] = [each.get_final_froms()[0] for each in TABLE_QUERIES]
STREAM_PAGES = TableStreams(*map(TreePages, TABLE_QUERIES, _queried_tables))
"""The same streams, of a tree."""


def check_lines(connection: Connection) -> Iterator[Finding]:
    """Read every branch; after damage, go on with the next branch."""
    place = ReadPlace()
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
                        place.after, place.name = (branch.tree_id, branch.branch), branch.place()
                        place.moved = True
                        streams = streams or _open_streams(connection, start, opened)
                        yield from _check_branch(connection, branch, streams, place)
                place.is_at_end = True
        except Exception as error:  # noqa: BLE001 - after any error the other branches are checked
            yield report_unchecked_place(place.name, error)
            place.is_at_end = place.is_at_end or not place.moved
    yield from place.report_older()


def check_tree(connection: Connection, tree_id: int) -> Iterator[Finding]:
    """Read every branch of a tree, up to a place that cannot be read."""
    place = ReadPlace()
    streams = TableStreams(*(RowStream(each.scan(connection, tree_id)) for each in STREAM_PAGES))
    try:
        for branch in TREE_BRANCH_ENDS.rows(connection, tree_id=tree_id):
            place.name = branch.place()
            yield from _check_branch(connection, branch, streams, place)
    except Exception as error:  # noqa: BLE001 - whatever it is, the tree is not known to be sound
        yield report_unchecked_place(place.name, error)
    yield from place.report_older()


class ReadPlace:
    """The place up to which branches were read."""

    def __init__(self) -> None:
        self.after: KeyPrefix = (-1, -1)
        self.name = "the branches"
        self.moved = self.is_at_end = False
        self.older = 0

    def report_older(self) -> Iterator[Finding]:
        """Yield a finding if messages were read that an earlier release did not protect."""
        if self.older:
            problem = "have digests of version 1, without when they were stored"
            yield Finding(OLDER, "the store", f"{self.older} messages {problem}")


def _open_streams(
    connection: Connection, after: KeyPrefix, opened: ExitStack
) -> TableStreams[RowStream]:
    """Begin to read the rows of all tables after a branch."""
    streams = []
    for query, table in zip(TABLE_QUERIES, _queried_tables, strict=True):
        is_after = tuple_(table.c.tree_id, table.c.branch) > tuple_(*after)
        ordered = query.where(is_after).order_by(*table.primary_key)
        rows = connection.execute(ordered, execution_options=STREAM_OPTIONS)
        streams.append(RowStream(opened.enter_context(closing(rows))))
    return TableStreams(*streams)


def _check_branch(
    connection: Connection, branch: BranchEnd, streams: TableStreams[RowStream], place: ReadPlace
) -> Iterator[Finding]:
    """Check each message of a branch, and that its positions have no gap up to its end."""
    key, last = (branch.tree_id, branch.branch), branch.parent_position
    end = (*key, branch.tip or 0) if branch.is_open else key
    for rows in _split_runs(streams.messages.between(key, end)):
        run = MessageRun(connection, branch, rows, streams.calls)
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
        for each, table in zip(TABLE_QUERIES, _queried_tables, strict=True)
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
        part = MessageRun(connection, branch, rows, streams.calls)
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

    def __init__(
        self, connection: Connection, branch: BranchEnd, rows: Iterator[Row], calls: RowStream
    ) -> None:
        self._connection, self._branch, self._calls = connection, branch, calls
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
        for tree_id, branch, seq, *row, stored_at, wire_format, digest in self._rows:
            self.last = seq
            columns, numbers, calls = row, [], []
            place = (tree_id, branch, seq)
            for _, _, _, number, *call in self._calls.between(place, place):
                numbers.append(number)
                calls.append(StoredCall(*call))
            try:
                run = {"tree_id": tree_id, "branch": branch}
                ((_, *columns),) = restore_messages(self._connection, run, [(seq, *row)])
                called = restore_calls(self._connection, run, [(seq, *call) for call in calls])
                calls = [StoredCall(*call) for _, *call in called]
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


@lru_cache(maxsize=1_000)
def _find_tables(query: str) -> frozenset[str]:
    return CHECKED_TABLES.intersection(re.findall(r"\w+", query))


class ReadCheck:
    """The check of an open store, which compares rows before a query reads them."""

    def __init__(self) -> None:
        self._spans: dict[tuple[int, int], tuple[int, int]] = {}
        self._states: dict[int, list[Any]] = {}
        self._structures: set[str] = set()

    def __call__(
        self, connection: Connection, query: str, values: dict[str, Any], seen: set[Any], /
    ) -> None:
        """Compare the rows that a query reads. Raises Damaged."""
        tables = _find_tables(query)
        if not tables:
            return
        if tool_kinds.name in tables:
            self._check_kinds(connection, seen)
        tree_id = values.get("tree_id")
        if tree_id is None and "session_id" in values:
            tree_id = lines.TREE_OF_SESSION.value(connection, session_id=values["session_id"])
        for name in tables & SEALED_BY_NAME.keys():
            self._check_sealed(connection, name, tree_id, seen)
        if tree_id is not None:
            self._check_tree(connection, tree_id, seen)
        if tables & (DIGESTED_TABLES | DERIVED_TABLES):
            for tree, run in _list_named_runs(connection, tree_id, values):
                if tables & DERIVED_TABLES:
                    self._check_facts(connection, tree, run)
                else:
                    self._check_messages(connection, tree, run, seen)

    def check_line(self, connection: Connection, pointer: Pointer, last: int) -> None:
        """Compare all rows of a line up to a position. Raises Damaged."""
        seen: set[Any] = set()
        for name in SEALED_BY_NAME:
            self._check_sealed(connection, name, pointer.tree_id, seen)
        self._check_tree(connection, pointer.tree_id, seen)
        for run in Line(connection, pointer).runs(1, last):
            self._check_facts(connection, pointer.tree_id, run)

    def _check_sealed(
        self, connection: Connection, name: str, tree_id: int | None, seen: set[Any]
    ) -> None:
        """Compare the rows of a table with their seals; once, check the table's structure too."""
        self._check_structure(connection, name)
        if (name, tree_id) not in seen:
            seen.add((name, tree_id))
            require_sound(check_table_seals(connection, SEALED_BY_NAME[name], tree_id))

    def _check_kinds(self, connection: Connection, seen: set[Any]) -> None:
        """Check the kinds of tools, which have no seals: their users may change them."""
        self._check_structure(connection, tool_kinds.name)
        if tool_kinds.name not in seen:
            seen.add(tool_kinds.name)
            require_sound(check_kinds(connection))

    def _check_structure(self, connection: Connection, name: str) -> None:
        if name not in self._structures and connection.dialect.name == "sqlite":
            require_sound(check_pages(connection, name))
            self._structures.add(name)

    def _check_tree(self, connection: Connection, tree_id: int, seen: set[Any]) -> None:
        """Compare the sessions, branches and moves of a tree if any of them has changed."""
        if ("tree", tree_id) in seen:
            return
        seen.add(("tree", tree_id))
        state = TREE_STATE.rows(connection, tree_id=tree_id)
        if self._states.get(tree_id) == state:
            return
        require_sound(check_tree_rules(connection, tree_id))
        require_sound(check_keys(connection, tree_id))
        _remember_compared(self._states, tree_id, state)

    def _check_messages(
        self, connection: Connection, tree_id: int, run: Segment, seen: set[Any]
    ) -> None:
        """Compare the messages of a run with their digests."""
        if (tree_id, run) not in seen:
            seen.add((tree_id, run))
            place = run.within(tree_id)
            raw_messages.check_digests(place, raw_messages.load_stored_rows(connection, place))

    def _check_facts(self, connection: Connection, tree_id: int, run: Segment) -> None:
        """Compare the messages of a run and their facts, except those compared before."""
        key = (tree_id, run.branch)
        known = self._spans.get(key)
        for part in _list_missing_parts(run, known):
            last = _check_run_facts(connection, tree_id, part)
            if last is not None:
                first = part.first
                if known is None:
                    known = first, last
                elif first <= known[1] + 1 and last >= known[0] - 1:
                    known = min(first, known[0]), max(last, known[1])
                else:
                    known = max(known, (first, last), key=lambda span: span[1] - span[0])
        if known:
            _remember_compared(self._spans, key, known)


def compare_line(connection: Connection, session_id: str, at: int | None = None) -> None:
    """Compare all rows of a session's line with their digests and seals.

    Raises Damaged, SessionNotFound, PositionOutOfRange.
    """
    pointer = lines.load_pointer(connection, session_id)
    ReadCheck().check_line(connection, pointer, lines.resolve_position(pointer, at))


def _list_named_runs(
    connection: Connection, tree_id: int | None, values: dict[str, Any]
) -> Iterator[tuple[int, Segment]]:
    """Yield the runs that the values of a query name, by a line, a run, a place or an id."""
    if "message_id" in values:
        for tree, branch, seq in MESSAGE_PLACES.rows(connection, message_id=values["message_id"]):
            yield tree, Segment(branch, seq, seq)
    elif tree_id is None or "branch" not in values:
        return
    elif "start" in values:
        line = {name: values[name] for name in ("tree_id", "branch", "start", "last")}
        for run in lines.SEGMENTS.rows(connection, **line):
            yield tree_id, run
    elif "first" in values:
        yield tree_id, Segment(values["branch"], values["first"], values["last"])
    elif "seq" in values:
        yield tree_id, Segment(values["branch"], values["seq"], values["seq"])


def _list_missing_parts(run: Segment, known: tuple[int, int] | None) -> Iterator[Segment]:
    """Yield the parts of a run that are not in a span."""
    if known is None or run.last < known[0] or run.first > known[1]:
        yield run
        return
    if run.first < known[0]:
        yield run._replace(last=known[0] - 1)
    if run.last > known[1]:
        yield run._replace(first=known[1] + 1)


def _check_run_facts(connection: Connection, tree_id: int, run: Segment) -> int | None:
    """Compare facts with the messages of a run; return the last position with facts."""
    branch = BRANCH_END.row(connection, tree_id=tree_id, branch=run.branch)
    if branch is None:
        return None
    last = None
    for read, findings in check_run(connection, branch, run.first, run.last):
        require_sound(findings)
        last = read
    return last


def _remember_compared(known: dict[Any, Any], key: object, value: object) -> None:
    if len(known) >= MOST_REMEMBERED:
        known.clear()
    known[key] = value
