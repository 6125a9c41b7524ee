"""Call back what is out of sight: what compactions hide, and what rules cleared or shortened.

What is asked for is names, or words: each finds what has it, and the rarer it is, the more it
counts. A passage is a whole group, a message alone or a call with all its results, since a result
says little without what was asked for. Where the index knows all that there is, it is asked; else
what is out of sight is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, given
from ..errors import InvalidValue, quoted
from ..history import Line, lines, raw
from ..messages import Message
from ..policy import Policy
from ..records import Passage, StoredMessage
from ..tokens import estimate
from ..view import build
from . import index
from .asked import MOST_HITS, asked
from .finding import Search
from .holders import Of
from .said import said
from .snippets import around, has_term
from .terms import Term, folded, terms

AGENT = Policy.named("agent")
BUDGET = 2_000
"""Tokens of all passages together."""
HIDDEN = "hidden"
LEAST = 80
"""Code points that are shown at least of a message that has no room."""

Asked = dict[Term, set[int]]
"""The positions out of sight that have each term."""


class Sight(NamedTuple):
    """A line, what of it is asked for, and why positions are out of sight."""

    line: Line
    terms: tuple[Term, ...]
    why: dict[int, str]


def recall(
    connection: Connection,
    session_id: str,
    wanted: str | Iterable[str],
    *,
    policy: Policy = AGENT,
    budget: int = BUDGET,
    now: Now = None,
) -> list[Passage]:
    """Return what is not in sight of a session's line, or only in part, and has what is wanted.

    ``wanted`` is a text, each word of which counts, or names. Out of sight is what a view by the
    ``policy`` does not send as it is stored: what a compaction hides, what was cleared, shortened
    or left out. The best passage comes first; a passage is a whole message, or a call with all its
    results. All of them together are about ``budget`` tokens at most: of a passage that alone is
    larger, what stands around the words is shown, if it is the best. Raises SessionNotFound,
    InvalidValue.
    """
    _check(budget)
    sight = _sight(connection, session_id, tuple(_terms(wanted)), policy, given(now))
    having = _having(sight, session_id)
    worth = {term: _worth(len(sight.why), len(found)) for term, found in having.items()}
    places = {place for found in having.values() for place in found}
    groups = {_group(sight.line, place) for place in places}
    passages = (_passage(sight, group, having, worth) for group in groups)
    best = sorted(passages, key=lambda each: (-each.score, -each.first))
    return list(_within(sight, best, budget))


def _check(budget: int) -> None:
    if type(budget) is not int or budget < 1:
        raise InvalidValue(f"budget is a number of tokens from 1, not {quoted(budget)}")


def _sight(
    connection: Connection,
    session_id: str,
    wanted: tuple[Term, ...],
    policy: Policy,
    moment: int,
) -> Sight:
    """Return the line of a session, and what of it a view does not send as it is stored."""
    view = build.view(connection, session_id, policy, now=moment)
    line = Line(connection, lines.find(connection, session_id))
    why = dict.fromkeys(range(1, line.pointer.head + 1), HIDDEN)
    for entry in view.entries:
        if entry.seq is not None and entry.rule is None:
            why.pop(entry.seq, None)
        elif entry.seq is not None:
            why[entry.seq] = entry.rule or HIDDEN
    return Sight(line, wanted, why)


def _terms(wanted: str | Iterable[str]) -> Iterator[Term]:
    """Yield the terms of a text, or one for each name. Raises InvalidValue."""
    if isinstance(wanted, str):
        yield from terms(wanted)
        return
    for name in wanted if isinstance(wanted, Iterable) else [wanted]:
        if not isinstance(name, str):
            raise InvalidValue(f"what is wanted is a text or names, not {quoted(name)}")
        phrase = name.replace('"', " ")
        yield from terms(f'"{phrase}"')


def _having(sight: Sight, session_id: str) -> Asked:
    """Return the positions out of sight that have each term, as far as any has it."""
    connection = sight.line.connection
    is_known = index.is_on(connection) and not index.is_behind(connection)
    found = _by_index(sight, session_id) if is_known else _by_reading(sight)
    return {term: places for term, places in found.items() if places}


def _by_index(sight: Sight, session_id: str) -> Asked:
    of = Of(session_id, tree=sight.line.pointer.tree_id)
    found: Asked = {}
    for term in sight.terms:
        wanted = asked(term.written, of, None, None, None, None, "newest", MOST_HITS, None)
        search = Search(sight.line.connection, wanted._replace(terms=(term,)))
        found[term] = {hit.seq for hit in search.messages()} & sight.why.keys()
    return found


def _by_reading(sight: Sight) -> Asked:
    found: Asked = {term: set() for term in sight.terms}
    for stored in raw.messages_between(sight.line, 1, sight.line.pointer.head):
        plain = folded(said(stored.message)) if stored.seq in sight.why else ""
        for term in filter(partial(has_term, plain), sight.terms):
            found[term].add(stored.seq)
    return found


def _worth(messages: int, having: int) -> float:
    """Return what a term counts: the more, the fewer messages out of sight have it."""
    return math.log(1 + messages / having)


def _group(line: Line, place: int) -> tuple[int, int]:
    """Return the first and the last position of the group that a message is in."""
    first = place
    while first > 1 and _role(line, first) == "tool":
        first -= 1
    last = first
    while last < line.pointer.head and _role(line, last + 1) == "tool":
        last += 1
    return first, last


def _role(line: Line, place: int) -> str:
    (stored,) = raw.messages_between(line, place, place)
    return str(stored.message["role"])


def _passage(
    sight: Sight, group: tuple[int, int], having: Asked, worth: dict[Term, float]
) -> Passage:
    """Return a whole group as a passage."""
    places = range(group[0], group[1] + 1)
    found = [term for term, known in having.items() if not known.isdisjoint(places)]
    text = "\n".join(_told(stored) for stored in raw.messages_between(sight.line, *group))
    why = next(sight.why[place] for place in places if place in sight.why)
    return Passage(*group, why, sum(worth[term] for term in found), text, estimate(text))


def _told(stored: StoredMessage, text: str | None = None) -> str:
    """Return a message as a passage shows it."""
    shown = said(stored.message) if text is None else text
    return f"[{stored.seq}] {_speaker(stored.message)}: {shown}"


def _speaker(message: Message) -> str:
    return "calls" if message.get("tool_calls") else str(message["role"])


def _within(sight: Sight, best: list[Passage], budget: int) -> Iterator[Passage]:
    """Yield the passages that there is room for; the first in part, where that has none."""
    left = budget
    for number, each in enumerate(best):
        shown = _cut(sight, each, budget) if number == 0 and each.tokens > budget else each
        if shown.tokens <= left:
            left -= shown.tokens
            yield shown


def _cut(sight: Sight, passage: Passage, budget: int) -> Passage:
    """Return a passage of which each message is shown where it has what is asked for."""
    stored = raw.messages_between(sight.line, passage.first, passage.last)
    room = budget * len(passage.text) // passage.tokens // len(stored)
    while True:
        texts = (_told(each, around(said(each.message), sight.terms, room)) for each in stored)
        text = "\n".join(texts)
        if estimate(text) <= budget or room < LEAST:
            return passage._replace(text=text, tokens=min(budget, estimate(text)))
        room = room * 3 // 4
