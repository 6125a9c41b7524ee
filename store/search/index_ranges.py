"""The ranges of numbers of the index that a search reads, one after the other.

In a file, numbers follow the order of storing, so the newest messages are ranges of their own. A
search for sessions begins with few messages and skips those of sessions that it has found. The
ranges of an owner with a small part of a file have as many messages of that owner.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..history import NO_LIMIT
from .documents import get_index_sql
from .scope import Scope, TreeList, cache_statement

NumberRange = tuple[int, int]
"""The first and the last number of some documents."""
MESSAGES = 1, NO_LIMIT
SUMMARIES = -NO_LIMIT, -1
"""The first and the last number that messages and summaries may have in the index."""
NEWEST_RANGES = 4_000, 16_000
"""Numbers of a file that are searched first, and next: few pages need more of frequent terms."""
FIRST_NUMBERS = 512
"""Numbers of a file that are searched first for sessions: skipped are those of sessions found."""
FEW_NUMBERS = 2_000
"""Numbers of a short range."""
LEAST_NUMBERS = 64
"""Numbers of a file that are searched next where sessions are long."""
MOST_SKIPPED = 64
"""Messages of sessions found that are read in a row, before the next others are looked for."""
MOST_IN_RANGE = 4
"""Times as many messages of trees that a range may have, before it is cut."""
WIDE_SHARE = 8
"""An owner with one in so many documents of a file has a large part of it."""


class IndexRange(NamedTuple):
    """The first and the last number of documents to select, and the scope of these."""

    first: int
    last: int
    scope: Scope

    @property
    def is_short(self) -> bool:
        """Whether all matches in the range are found as fast as the last ones of them."""
        return self.last - self.first < FEW_NUMBERS

    @property
    def bound_values(self) -> dict[str, Any]:
        """The values that queries of the index bind."""
        return self.scope.index_parameters(self.first, self.last)


class TreeNumbers(NamedTuple):
    """The first and the last number of the messages of a tree, and how many it has."""

    tree_id: int
    first: int
    last: int
    messages: int


def is_wide_scope(connection: Connection, scope: Scope) -> bool:
    """Tell whether a scope is that of an owner with a large part of a file's documents.

    Documents are then looked at one by one, the last stored first, and those of the owner are not
    listed before.
    """
    if connection.dialect.name != "sqlite" or scope.owner is None:
        return False
    newest = cache_statement(get_index_sql(connection).max_number).value(connection) or 0
    owned = f"SELECT 1 FROM search_rows r WHERE true{scope.tree_condition('r')} LIMIT :most"
    count: int = cache_statement(f"SELECT COUNT(*) FROM ({owned}) AS owned").value(
        connection, **scope.parameters, most=newest // WIDE_SHARE + 1
    )
    return count * WIDE_SHARE > newest


def has_few_documents(connection: Connection, scope: Scope) -> bool:
    """Tell whether a scope is some trees, or a small part of a file."""
    is_part = connection.dialect.name == "sqlite" and bool(scope.parameters)
    return scope.trees is not None or (is_part and not scope.is_wide)


_OWNED_TREES = (
    "SELECT r.tree_id, MIN(r.number), MAX(r.number), COUNT(*) FROM search_rows r"
    " WHERE r.number > 0{} GROUP BY r.tree_id"
)


class IndexRanges:
    """The ranges of a scope up to a number, the last one first; those of summaries at the end.

    ``passed`` are the trees found so far of a search for sessions, which become more; None if it is
    for messages.
    """

    def __init__(
        self, connection: Connection, scope: Scope, last: int, passed: AbstractSet[int] | None
    ) -> None:
        self._connection, self._passed = connection, passed
        self._last, self._is_left = last, False
        self._has_order = connection.dialect.name == "sqlite"
        self._trees: list[TreeNumbers] | None = None
        if self._has_order and has_few_documents(connection, scope):
            self._has_order = passed is not None and scope.trees is None
            if self._has_order:
                self._trees = self._list_trees(scope)
                scope = self._scope_trees(scope, self._trees)
        self.scope = scope

    def _list_trees(self, scope: Scope) -> list[TreeNumbers]:
        """Return the trees of a scope, those with the last numbers first."""
        listed = cache_statement(_OWNED_TREES.format(scope.tree_condition("r")))
        rows = listed.rows(self._connection, **scope.parameters)
        return sorted(map(TreeNumbers._make, rows), key=lambda each: -each.last)

    @staticmethod
    def _scope_trees(scope: Scope, trees: list[TreeNumbers]) -> Scope:
        """Return a scope with trees as the only ones."""
        listed = json.dumps([each.tree_id for each in trees])
        return scope._replace(trees=TreeList(listed))

    @property
    def everywhere(self) -> IndexRange:
        """The range of all documents."""
        return IndexRange(-NO_LIMIT, self._last, self.scope)

    def leave(self, number: int) -> None:
        """Leave the present range: the next one begins below a number."""
        self._last, self._is_left = number - 1, True

    def __iter__(self) -> Iterator[IndexRange]:
        """Yield the ranges: of messages, the last stored first, then of summaries."""
        index_sql = get_index_sql(self._connection)
        sizes: Iterable[int] = ()
        if self._has_order:
            self._last = min(self._last, self._read_number(index_sql.max_number))
            sizes = NEWEST_RANGES if self._passed is None else self._session_sizes(self._passed)
        waiting = iter(sizes)
        while self._last > 0:
            found_in = self._cut_range(next(waiting, NO_LIMIT))
            self._last = found_in.first - 1
            if found_in.last > 0:
                yield found_in
            self._skip_passed()
        if self._read_number(index_sql.min_number) < 0:
            yield IndexRange(*SUMMARIES, self.scope)

    def _read_number(self, sql: str, **values: Any) -> int:
        return cache_statement(sql).value(self._connection, **values) or 0

    def _session_sizes(self, passed: AbstractSet[int]) -> Iterator[int]:
        """Yield the sizes of ranges: four times as many numbers after one that passed no tree.

        A range that was left had the messages of a long session: a shorter one does for the next.
        """
        size = FIRST_NUMBERS
        while size <= NEWEST_RANGES[-1]:
            known = len(passed)
            self._is_left = False
            yield size
            if self._is_left:
                size = max(size // 4, LEAST_NUMBERS)
            elif len(passed) == known:
                size *= 4
            elif size > LEAST_NUMBERS:
                size = FIRST_NUMBERS

    def _cut_range(self, size: int) -> IndexRange:
        """Return the range of so many last numbers, or of trees with so many messages."""
        last, passed = self._last, self._passed or ()
        if self._trees is None:
            return IndexRange(max(1, last - size + 1), last, self.scope)
        left = [each for each in self._trees if each.first <= last and each.tree_id not in passed]
        taken: list[TreeNumbers] = []
        count, first = 0, 1
        for each in left:
            is_full = count >= size or count + each.messages > MOST_IN_RANGE * size
            if taken and is_full and each.last < last:
                first = each.last + 1
                break
            taken.append(each)
            count += each.messages
        last = min(last, max((each.last for each in taken), default=0))
        first = max(first, min((each.first for each in taken), default=1))
        if count > MOST_IN_RANGE * size:
            width = last - min(each.first for each in taken) + 1
            first = max(first, last - width * size // count + 1)
        return IndexRange(first, last, self._scope_trees(self.scope, taken))

    def _skip_passed(self) -> None:
        """Go on to the last number up to the present one, of a tree in the scope not passed."""
        if not self._has_order or self._passed is None or self._trees is not None:
            return
        scope = self.scope
        newest = f"""SELECT r.number FROM search_rows r WHERE r.number BETWEEN 1 AND :last
    AND r.tree_id NOT IN (SELECT value FROM json_each(:passed)){scope.tree_condition("+r")}
    ORDER BY r.number DESC LIMIT 1"""
        passed = json.dumps([*self._passed])
        values = scope.parameters | {"last": self._last, "passed": passed}
        self._last = self._read_number(newest, **values)
