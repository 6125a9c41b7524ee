"""The check of rows before a read returns them.

`verify` reads a whole store; this check compares only the rows that a query names: the messages of
a run with their digests, their facts with facts derived from the messages, sealed rows with their
seals, and the head of a session with its moves. It recognises these rows by the tables in the text
of the query, and by the parameters that all statements use for a place, a run or a line. So no
statement has to ask for the check.

Messages and sealed rows are compared at each read, since a caller receives them. Facts follow from
messages, and deriving them costs far more than reading them, so an open store compares those of a
position once, with their message. The rules between the rows of a tree are checked again after the
revision of one of its sessions has changed. A row that SQLite no longer finds has no seal to
compare, so the structure of a table with seals is checked once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, select

from ..database import BIG_INTEGER, SEALED_TABLES, Statement, messages, session_ids, sessions
from ..history import Line, Pointer, Segment, lines, raw_messages
from .checks import check_keys, check_pages, check_table_seals, require_sound
from .invariants import list_tree_rules
from .line_check import BRANCH_END, check_run

DIGESTED_TABLES = frozenset({"messages", "tool_calls"})
"""The tables that are covered by digests."""
DERIVED_TABLES = frozenset({"message_facts", "tool_results", "tool_result_paths"})
"""The tables that are derived from these."""
SEALED_BY_NAME = {table.name: table for table in SEALED_TABLES}
CHECKED_TABLES = DIGESTED_TABLES | DERIVED_TABLES | SEALED_BY_NAME.keys()
MOST_REMEMBERED = 10_000
"""Compared branches and trees that an open store remembers."""

TREE_OF_SESSION = Statement(
    select(session_ids.c.tree_id).where(session_ids.c.id == bindparam("session_id"))
)
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
        tree_id = values.get("tree_id")
        if tree_id is None and "session_id" in values:
            tree_id = TREE_OF_SESSION.value(connection, session_id=values["session_id"])
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
        if name not in self._structures and connection.dialect.name == "sqlite":
            require_sound(check_pages(connection, name))
            self._structures.add(name)
        if (name, tree_id) not in seen:
            seen.add((name, tree_id))
            require_sound(check_table_seals(connection, SEALED_BY_NAME[name], tree_id))

    def _check_tree(self, connection: Connection, tree_id: int, seen: set[Any]) -> None:
        """Compare the sessions, branches and moves of a tree if any of them has changed."""
        if ("tree", tree_id) in seen:
            return
        seen.add(("tree", tree_id))
        state = TREE_STATE.rows(connection, tree_id=tree_id)
        if self._states.get(tree_id) == state:
            return
        for rule, breaches in list_tree_rules(connection.dialect.name):
            require_sound(rule.breaches(breaches.rows(connection, tree_id=tree_id)))
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
