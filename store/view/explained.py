"""What a view says of itself, made when somebody asks for it.

All that it is made of was read with the view, in its transaction, and is narrow.
"""

from __future__ import annotations

from functools import cached_property
from itertools import starmap
from typing import NamedTuple

from ..formats import Names, Placed, format_named, names_sent
from ..messages import WIRE
from ..records import Entry, LeftOut, ViewStats
from .entries import Counted, entries_of, stats_of
from .judging import Verdicts
from .prompt_cache import Request, Sight, unchanged_tokens
from .read_files import Files
from .rendering import DROPPED, UnsentItem


class Known(NamedTuple):
    """What was read with a view: ``stored`` are the tokens of the whole line.

    ``names`` are those that its format takes, None where it sends none.
    """

    sight: Sight
    names: Names | None
    placed: list[Placed]
    judged: Verdicts
    tokens: Counted
    files: Files
    pictured: dict[int, str]
    stored: int
    request: Request | None
    left_out: dict[int, UnsentItem]
    format: str


UNPAIRED = {"tool": "a result of no call", "assistant": "it says nothing but calls without results"}
"""Why pairing leaves a message out, by its role."""


def _left_out(seq: int, unsent: UnsentItem) -> LeftOut:
    """Return what is said of a message that a format, or pairing, has no place for."""
    kind, own = unsent
    if own is None:
        return LeftOut(seq, str(kind), "nothing in it is for a chat")
    reason = UNPAIRED[kind] if own == DROPPED else f"only the format {own} has it"
    return LeftOut(seq, str(kind), reason)


def _unsent(placed: Placed) -> LeftOut:
    """Return what is said of an item that has a place, and is not sent by its own format."""
    block = placed.message[WIRE]["block"]
    reason = "without the item that it belongs to it would be refused"
    return LeftOut(placed.seq or 0, str(block["type"]), reason)


class Explanation:
    """The entries and totals of a view."""

    def __init__(self, known: Known) -> None:
        self._known = known

    @cached_property
    def entries(self) -> list[Entry]:
        """Why each message is as it is; the list is the caller's."""
        return [*self.made]

    @cached_property
    def made(self) -> tuple[Entry, ...]:
        """The same, as nobody changes it."""
        if self._known.names is None:
            return self.without_names
        told = names_sent(self._known.placed, self._known.names)
        pairs = zip(self.without_names, told, strict=True)
        return tuple(_with_reason(entry, more) if more else entry for entry, more in pairs)

    @cached_property
    def without_names(self) -> tuple[Entry, ...]:
        """The entries before they say which ids and names of tools are sent as other ones."""
        known = self._known
        return entries_of(
            known.sight.policy,
            known.placed,
            known.judged,
            known.tokens,
            known.files,
            known.pictured,
        )

    @cached_property
    def stats(self) -> ViewStats:
        """What the messages cost, and what the rules save."""
        known, entries = self._known, self.made
        unchanged = unchanged_tokens(known.sight, known.request, known.placed, entries)
        return stats_of(
            known.sight.last,
            known.stored,
            entries,
            known.tokens,
            left_out=self._left_out(),
            unchanged_tokens=unchanged,
        )

    @cached_property
    def _all_left_out(self) -> tuple[LeftOut, ...]:
        known = self._known
        alone = map(_unsent, format_named(known.format).unsent(known.placed))
        return tuple(sorted([*starmap(_left_out, known.left_out.items()), *alone]))

    @property
    def left_out(self) -> list[LeftOut]:
        """What is visible and is not sent; the list is the caller's."""
        return [*self._all_left_out]

    def _left_out(self) -> tuple[int, ...]:
        """Return the positions that were visible and are in no entry."""
        shown = {each.seq for each in self._known.placed}
        return tuple(seq for seq in self._known.tokens.estimates if seq not in shown)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Explanation):
            return NotImplemented
        return (self.made, self.stats) == (other.made, other.stats)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Explanation({self.stats})"


def _with_reason(entry: Entry, more: str) -> Entry:
    return entry._replace(reason="; ".join(filter(None, (entry.reason, more))))
