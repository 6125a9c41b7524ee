"""Call back what is out of sight: what compactions hide, and what rules cleared or shortened.

What is asked for is names, or words: each finds what has it, and the rarer it is, the more it
counts. A passage is a whole group, a message alone or a call with all its results, since a result
says little without what was asked for. So a call is found, too, that is in sight while its result
is not: the line in place of a cleared result names a file or a command, and by that name it is
called back. A call that is about what is asked for counts more than what mentions it, and a call
that reads it most.

Where the index knows all that the session has, it is asked; else what is out of sight is read.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from ..clock import Now, given
from ..database import Statement, message_facts
from ..errors import InvalidValue, quoted
from ..history import Line, Segment, lines, load_tool_kinds, raw_messages
from ..messages import Message
from ..policy import Policy
from ..records import Passage
from ..text import ELLIPSES, ELLIPSIS
from ..tokens import estimate
from ..tools import kind_name
from ..view import build, describe_target, rules
from . import index
from .documents import CHUNK, Place, messages_at
from .hits import Search
from .query import MOST_HITS, asked
from .said import said
from .scope import Of
from .snippets import around, has_term
from .terms import Term, folded, terms

AGENT = Policy.named("agent")
BUDGET = 6_000
"""Tokens of all passages together: the usual read of a file has room."""
HIDDEN = "hidden"
BATCH = 8
"""Passages that are read at once."""
LEAST = 80
"""Code points that are shown at least of a message that has no room."""

MOST = 100
"""Passages that are looked at for what there is room for, the best ones."""
MENTIONED, OWN, READ = 1, 2, 3
"""What a term counts in what mentions it, in a call about it, and in a call that reads it."""

ROLES = Statement(
    select(message_facts.c.seq, message_facts.c.role)
    .where(lines.in_run(message_facts))
    .order_by(message_facts.c.seq)
)

Having = dict[Term, set[int]]
"""The positions out of sight that have each term."""
Span = tuple[int, int]
"""The first and the last position of a group."""
Names = dict[str, tuple[Term, ...]]
"""What a call may be about, as `_plain` writes it, and the terms that it is asked for by."""


class Sight(NamedTuple):
    """A line, what of it is asked for, why positions are out of sight, and its groups.

    ``shown`` is what stands in the place of results that were cleared; ``groups`` has the group of
    each position.
    """

    line: Line
    terms: tuple[Term, ...]
    why: dict[int, str]
    shown: dict[int, str]
    groups: dict[int, Span]
    runs: list[Segment]

    def places(self, group: Span) -> list[Place]:
        """Return where the messages of a group are stored."""
        tree_id, first, last = self.line.pointer.tree_id, *group
        at = bisect_left(self.runs, first, key=lambda run: run.last)
        return [
            (tree_id, run.branch, seq)
            for run in self.runs[at:]
            for seq in range(max(first, run.first), min(last, run.last) + 1)
        ]


def recall(
    connection: Connection,
    session_id: str,
    wanted: str | Iterable[str],
    *,
    policy: Policy | None = None,
    budget: int = BUDGET,
    now: Now = None,
) -> list[Passage]:
    """Return what is not in sight of a session's line, or only in part, and has what is wanted.

    ``wanted`` is a text, each word of which counts, or names. Out of sight is what a view by the
    ``policy`` (None: ``Policy.named("agent")``) does not send as it is stored: what a compaction
    hides, what was cleared, shortened or left out. The best passage comes first; a passage is a
    whole message, or a call with all its results. All of them together are about ``budget`` tokens
    at most: of a passage that alone is larger, what stands around the words is shown, if it is the
    best. Raises SessionNotFound, InvalidValue.
    """
    _check(budget)
    policy = AGENT if policy is None else policy
    names = _names(wanted)
    asked_for = tuple(dict.fromkeys(chain.from_iterable(names.values())))
    sight = _sight(connection, session_id, asked_for, policy, given(now))
    having = _having(sight, session_id)
    worth = {term: _worth(len(sight.why), len(found)) for term, found in having.items()}
    found = _terms_by_group(sight, having)
    weights = _weights(sight, found, names, policy)
    scores = {
        group: sum(worth[term] * weights.get((group, term), MENTIONED) for term in has)
        for group, has in found.items()
    }
    best = sorted(scores, key=lambda group: (-scores[group], -group[0]))
    return list(_within(sight, best, scores, budget))


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
    line = Line(connection, lines.load_pointer(connection, session_id))
    why = dict.fromkeys(range(1, line.pointer.head + 1), HIDDEN)
    shown: dict[int, str] = {}
    for entry in view.entries:
        if entry.seq is not None and entry.rule is None:
            why.pop(entry.seq, None)
        elif entry.seq is not None:
            why[entry.seq] = entry.rule or HIDDEN
            if entry.rule in rules.NAMING:
                shown[entry.seq] = str(entry.message.get("content"))
    runs = line.runs(1, line.pointer.head)
    groups = _groups(line, runs)
    for place, reason in [*why.items()]:
        why.setdefault(groups[place][0], reason)  # a call counts while its result is out of sight
    return Sight(line, wanted, why, shown, groups, runs)


def _groups(line: Line, runs: list[Segment]) -> dict[int, Span]:
    """Return the group of each position of a line: a message, and the results that follow it."""
    rows = (ROLES.rows(line.connection, **run.within(line.pointer.tree_id)) for run in runs)
    starts = [seq for seq, role in chain.from_iterable(rows) if role != "tool" or seq == 1]
    ends = [*(seq - 1 for seq in starts[1:]), line.pointer.head]
    spans = zip(starts, ends, strict=False)
    return {seq: span for span in spans for seq in range(span[0], span[1] + 1)}


def _names(wanted: str | Iterable[str]) -> Names:
    """Return what is wanted: a text and each of its words, or names. Raises InvalidValue."""
    if isinstance(wanted, str):
        words = terms(wanted)
        each_word = {_plain(each.written): (each,) for each in words}
        return {_plain(wanted): tuple(words)} | each_word
    names: Names = {}
    for name in wanted if isinstance(wanted, Iterable) else [wanted]:
        if not isinstance(name, str):
            raise InvalidValue(f"what is wanted is a text or names, not {quoted(name)}")
        phrase = name.replace('"', " ")
        names[_plain(name)] = tuple(terms(f'"{phrase}"'))
    return names


def _plain(name: str) -> str:
    """Return a name as it is compared: without quotes, case, or an ellipsis at its end."""
    plain = " ".join(folded(name).replace('"', " ").split())
    return plain.rstrip("".join(ELLIPSES)) if plain.endswith(ELLIPSES) else plain


def _having(sight: Sight, session_id: str) -> Having:
    """Return the positions out of sight that have each term, as far as any has it."""
    connection = sight.line.connection
    of = Of(session_id, tree=sight.line.pointer.tree_id)
    is_known = index.is_on(connection) and not index.is_behind(connection, of)
    found = _by_index(sight, of) if is_known else _by_reading(sight)
    for seq, text in sight.shown.items():
        plain = folded(text)
        for term in filter(partial(has_term, plain), sight.terms):
            found[term].add(seq)
    return {term: places for term, places in found.items() if places}


def _by_index(sight: Sight, of: Of) -> Having:
    found: Having = {}
    for term in sight.terms:
        wanted = asked(term.written, of, None, None, None, None, "newest", MOST_HITS, None)
        rows = Search(sight.line.connection, wanted._replace(terms=(term,))).rows()
        messages = (row.seq for row in rows if not row.summary)
        found[term] = {*islice(messages, MOST_HITS)} & sight.why.keys()
    return found


def _by_reading(sight: Sight) -> Having:
    found: Having = {term: set() for term in sight.terms}
    for stored in raw_messages.load_chat_messages(sight.line, 1, sight.line.pointer.head):
        plain = folded(said(stored.message)) if stored.seq in sight.why else ""
        for term in filter(partial(has_term, plain), sight.terms):
            found[term].add(stored.seq)
    return found


def _worth(messages: int, having: int) -> float:
    """Return what a term counts: the more, the fewer messages out of sight have it."""
    return math.log(1 + messages / having)


def _terms_by_group(sight: Sight, having: Having) -> dict[Span, list[Term]]:
    """Return the groups that have anything of what is asked for, and what."""
    found: dict[Span, list[Term]] = {}
    for term, places in having.items():
        for group in {sight.groups[place] for place in places}:
            found.setdefault(group, []).append(term)
    return found


def _weights(
    sight: Sight, found: dict[Span, list[Term]], names: Names, policy: Policy
) -> dict[tuple[Span, Term], int]:
    """Return what terms count in groups whose calls are about what is asked for."""
    weights: dict[tuple[Span, Term], int] = {}
    kinds = {**load_tool_kinds(sight.line.connection), **policy.tool_kinds}
    calls = [group for group in found if group[0] < group[1]]
    for at in range(0, len(calls), CHUNK):
        chunk = calls[at : at + CHUNK]
        places = {group: sight.places((group[0], group[0]))[0] for group in chunk}
        messages = messages_at(sight.line.connection, places.values())
        for group, place in places.items():
            for target, kind in _targets(messages[place], kinds, sight.line.pointer.project_root):
                about = (asked for name, asked in names.items() if _is_about(target, name))
                for term in chain.from_iterable(about):
                    least = weights.get((group, term), MENTIONED)
                    weights[group, term] = max(least, READ if kind == "file_read" else OWN)
    return weights


def _targets(
    message: Message, kinds: dict[str, Any], project_root: str | None
) -> Iterator[tuple[str, str | None]]:
    """Yield the file or the command of each call, and of which kind its tool is."""
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments = function.get("arguments")
            kind = kinds.get(kind_name(function.get("name"), arguments) or "")
            yield describe_target(arguments, kind, project_root), kind


def _is_about(target: str, name: str) -> bool:
    """Tell whether a call's file or command is what is asked for: its path may be longer."""
    known = _plain(target)
    if not known or not name:
        return False
    is_path = known.endswith(f"/{name}") or name.endswith(f"/{known}")
    # The longer ellipsis of a placeholder in English leaves less of a name that is cut.
    begins = known[: -len(ELLIPSES[1])].rstrip()
    is_cut = target.endswith(ELLIPSIS) and name.startswith(begins)
    return known == name or is_path or is_cut


def _within(
    sight: Sight, best: list[Span], scores: dict[Span, float], budget: int
) -> Iterator[Passage]:
    """Yield the passages that there is room for; the first in part, where that has none."""
    left = budget
    for at in range(0, min(len(best), MOST), BATCH):
        groups = best[at : at + BATCH]
        places = {group: sight.places(group) for group in groups}
        messages = messages_at(sight.line.connection, chain.from_iterable(places.values()))
        for group in groups:
            stored = [(seq, messages[tree, branch, seq]) for tree, branch, seq in places[group]]
            text = "\n".join(_told(seq, message, said(message)) for seq, message in stored)
            if estimate(text) > budget and group == best[0]:
                text = _cut(sight, stored, text, budget)
            tokens = min(budget, estimate(text))
            if tokens <= left:
                left -= tokens
                why = next(sight.why[seq] for seq, _ in stored if seq in sight.why)
                yield Passage(*group, why, scores[group], text, tokens)


def _told(seq: int, message: Message, text: str) -> str:
    """Return a message as a passage shows it."""
    speaker = "calls" if message.get("tool_calls") else str(message["role"])
    return f"[{seq}] {speaker}: {text}"


def _cut(
    sight: Sight,
    stored: list[tuple[int, Message]],
    whole: str,
    budget: int,
) -> str:
    """Return a passage of which each message is shown where it has what is asked for."""
    room = budget * len(whole) // estimate(whole) // len(stored)
    while True:
        text = "\n".join(
            _told(seq, message, around(said(message), sight.terms, room)) for seq, message in stored
        )
        if estimate(text) <= budget or room < LEAST:
            return text
        room = room * 3 // 4
