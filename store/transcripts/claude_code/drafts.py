"""Which rows of a run make a message of the API, and in what order these stand."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

from .kept import NO_ANSWER, SessionRows
from .rows import RowIndices
from .tree import sort_by_needs

RowGroup = Sequence[int]
"""Rows, by index, of one message of the API; a user's content may make several of ours."""


class RunMessages:
    """The messages of a run: ``firsts`` are their first rows, ``_next`` maps a row to the next."""

    def __init__(self, rows: SessionRows, indices: Iterable[int]) -> None:
        """Join the rows of a run to messages, in the order of their first rows.

        One API message may be several rows. A message id without a request's beside it comes from
        elsewhere, and may be the same for every answer: there it counts within its turn.
        """
        self.firsts = array("q")
        self._next: dict[int, int] = {}
        lasts: dict[object, int] = {}
        turn = 0
        for index in indices:
            outline, answer = rows.outlines[index], rows.answers[index]
            turn += outline.begins_turn
            key = answer if outline.has_request else (answer, turn)
            if answer != NO_ANSWER and key in lasts:
                self._next[lasts[key]] = index
            else:
                self.firsts.append(index)
            lasts[key] = index

    def __iter__(self) -> Iterator[RowGroup]:
        """Yield the rows of each message."""
        return map(self.rows_of, self.firsts)

    def rows_of(self, first: int) -> RowGroup:
        """Return the rows of a message by its first one."""
        rows = [first]
        while rows[-1] in self._next:
            rows.append(self._next[rows[-1]])
        return rows


def order_run_messages(
    rows: SessionRows, parents: RowIndices, indices: Iterable[int]
) -> RunMessages:
    """Return the messages of a run, each after the messages that it needs before it."""
    drafts = RunMessages(rows, indices)
    order = sort_by_needs(len(drafts.firsts), _Precedence(rows, parents, drafts).needs)
    drafts.firsts = array("q", map(drafts.firsts.__getitem__, order))
    return drafts


class _Precedence:
    """What must stand before each message: its parent, and the calls that it answers."""

    def __init__(self, rows: SessionRows, parents: RowIndices, drafts: RunMessages) -> None:
        self._rows = rows
        self._parents = parents
        self._drafts = drafts
        self._places: dict[int, int] = {}
        self._callers: dict[int, int] = {}
        for place, draft in enumerate(drafts):
            for index in draft:
                self._places[index] = place
                self._keep_calls(index, place)

    def _keep_calls(self, index: int, place: int) -> None:
        if self._rows.outlines[index].role == "assistant":
            for call in self._rows.links_of(index):
                self._callers.setdefault(call, place)

    def needs(self, place: int) -> list[int]:
        """Return the places of the messages that the message at a place must come after.

        Where rows are out of order, the first row may follow its own message, or the result of
        another of its calls: that is no parent.
        """
        found = [*self._answered(place)]
        for above in self._above(place):
            if above != place and (above is None or place not in self._answered(above)):
                return found if above is None else [above, *found]
        return found

    def _above(self, place: int) -> Iterator[int | None]:
        for index in self._drafts.rows_of(self._drafts.firsts[place]):
            parent = self._parents[index]
            yield None if parent is None else self._places.get(parent)

    def _answered(self, place: int) -> Iterator[int]:
        """Yield the places of the calls that the message at a place answers."""
        index = self._drafts.firsts[place]
        if self._rows.outlines[index].role == "user":
            called = map(self._callers.get, self._rows.links_of(index))
            yield from (caller for caller in called if caller is not None)
