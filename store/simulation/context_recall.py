"""The recall of a context: the share of the names needed by its model that a request contains.

A model can only repeat a name that it was given. Of the names that it repeats within the next
messages and that were in a message before a request, and in none of others since, the request
should have each: in a message as it is stored, or in a text that replaces others. Names are
strings; words and meaning are not compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from ..records import Message, View
from ..tokens import message_text
from ..tools import TextName, count_names

LOOKAHEAD = 60
"""Messages after a request in which a repeated name counts as needed by it."""


class RepeatedName(NamedTuple):
    """A name that the model repeats at one position, and its last source at another."""

    position: int
    source: int
    name: TextName


class ShownNames(NamedTuple):
    """A message of a view, kept so that no other one gets its `id`, and the names in it."""

    message: Message
    names: frozenset[TextName]


class ContextRecall:
    """The names that the requests of a session need, and how many of them were in the requests."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._positions: dict[TextName, list[int]] = defaultdict(list)
        self._repeated: list[RepeatedName] = []
        self._called: dict[int, frozenset[TextName]] = {}
        self._shown: dict[int, ShownNames] = {}
        self.needed = self.seen = 0
        by_others: dict[TextName, int] = {}
        for position, message in enumerate(messages, 1):
            names = _extract_names(message_text(message))
            if message.get("role") == "assistant":
                calls: Message = {"role": "assistant", "tool_calls": message.get("tool_calls")}
                self._called[position] = _extract_names(message_text(calls))
                for name in sorted(name for name in names if name in self._positions):
                    # A name that the model found by itself has its first position as the source.
                    source = by_others.get(name, self._positions[name][0])
                    self._repeated.append(RepeatedName(position, source, name))
            else:
                by_others |= dict.fromkeys(names, position)
            for name in names:
                self._positions[name].append(position)

    @property
    def share(self) -> float | None:
        """The share of the needed names that were in the requests; None if none was needed."""
        return self.seen / self.needed if self.needed else None

    def count(self, view: View) -> frozenset[TextName]:
        """Count the names that a request needs, and those that its view contains.

        Return the names in the calls of its answer that the view does not contain.
        """
        start = bisect_right(self._repeated, view.at, key=attrgetter("position"))
        end = bisect_left(self._repeated, view.at + LOOKAHEAD, key=attrgetter("position"))
        needed = {each.name for each in self._repeated[start:end] if each.source <= view.at}
        if not needed:
            return frozenset()
        unchanged: set[int] = set()
        others: set[TextName] = set()
        for entry in view.explained.shared_entries:
            if entry.seq is not None and entry.rule in (None, "repair"):
                unchanged.add(entry.seq)
            else:
                others |= needed & self._find_names(entry.message)
        in_sight = {
            name
            for name in needed
            if name in others or not unchanged.isdisjoint(self._positions[name])
        }
        self.needed += len(needed)
        self.seen += len(in_sight)
        repeated = self._repeated[start:end]
        answer = {each.name for each in repeated if each.position == view.at + 1}
        called = self._called.get(view.at + 1, frozenset())
        return (called & needed & answer) - in_sight

    def _find_names(self, message: Message) -> frozenset[TextName]:
        """Return the names in a message of a view; the next views have most of them again."""
        shown = self._shown.get(id(message))
        if shown is None:
            shown = ShownNames(message, _extract_names(message_text(message)))
            self._shown[id(message)] = shown
        return shown.names


@lru_cache(maxsize=4_096)
def _extract_names(text: str) -> frozenset[TextName]:
    return frozenset(count_names(text))
