"""How much of a view a prompt cache still holds: what is as in the last recorded request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from typing import NamedTuple

from ..formats import Placed
from ..history import LastRequest, find_last_usage
from ..policy import Policy
from ..records import Compaction, Entry
from .context import ViewContext
from .judging import Verdicts
from .placeholders import MEDIA_RULE, UNREADABLE_MEDIA
from .rejudging import load_earlier_verdicts
from .rules import REASONS
from .visible_set import ActiveSummary, VisibleSet, build_visible_set, select_active

Rules = dict[int, str | None]
"""Which rule replaced each result in a request, by position."""


class Sight(NamedTuple):
    """What a look sees, by which policy, without the way to its rows."""

    policy: Policy
    visible: VisibleSet
    last: int


class Request(NamedTuple):
    """A request that was made before: what it saw, and what the rules said of the results."""

    sight: Sight
    judged: Verdicts


def sight_of(context: ViewContext) -> Sight:
    """Return what a look sees."""
    return Sight(context.policy, context.visible, context.last)


def last_request(context: ViewContext, placed: list[Placed]) -> Request | None:
    """Return the request before a view of these messages, None where none was recorded.

    It is the one that `record_usage` recorded last, at its position and moment, by the same policy.
    """
    usage = find_last_usage(context.raw, context.last)
    if usage is None:
        return None
    then = _look_of(context, usage)
    if _has_results(context, then, placed):
        return Request(sight_of(then), load_earlier_verdicts(then))
    return Request(sight_of(then), {})


def _has_results(context: ViewContext, then: ViewContext, placed: list[Placed]) -> bool:
    """Tell whether any result may be in what a view begins with as a request did."""
    if context.visible.first_kept == then.visible.first_kept:
        return True
    had = _had(sight_of(context), sight_of(then), placed)
    return any(each.message["role"] == "tool" for each in had)


def _had(now: Sight, then: Sight, placed: list[Placed]) -> Iterator[Placed]:
    """Return the messages that a view begins with as a request did."""
    begun = _beginning(now, then)
    return takewhile(begun.has, placed)


def unchanged_tokens(
    sight: Sight,
    request: Request | None,
    placed: list[Placed],
    entries: Sequence[Entry],
) -> int | None:
    """Return how many tokens of a view the request before it began with as well.

    ``placed`` and ``entries`` are the messages of the view, one for one. None where there is none.
    """
    if request is None:
        return None
    had = _had(sight, request.sight, placed)
    there = [entry for entry, _ in zip(entries, had, strict=False)]
    rules = {seq: verdict.rule for seq, verdict in request.judged.items()}
    return _same_tokens(there, {**rules, **_pictures_then(sight, there)})


def _pictures_then(sight: Sight, there: list[Entry]) -> Rules:
    """Return the results whose pictures had given way before, too.

    Where none is ever sent, all; where those of the current turn are, all before that turn; what
    nobody can read always has.
    """
    named = [entry for entry in there if entry.rule == MEDIA_RULE]
    if sight.policy.picture_keep:
        named = [entry for entry in named if entry.reason == REASONS[UNREADABLE_MEDIA]]
    elif sight.policy.picture_current_turn:
        spoken = (each.seq for each in there if each.seq and each.message["role"] == "user")
        began = max(spoken, default=0)
        named = [entry for entry in named if entry.seq and entry.seq < began]
    return {entry.seq: MEDIA_RULE for entry in named if entry.seq}


def _same_tokens(there: list[Entry], rules: Rules) -> int:
    """Return the tokens of the entries before the first that is not as it was."""
    same = takewhile(lambda entry: _is_same(entry, rules), there)
    return sum(entry.tokens for entry in same)


class _Begun(NamedTuple):
    """What a view and a request begin with: positions, and compactions whose summaries stand."""

    positions: set[int]
    compactions: set[int | None]

    def has(self, placed: Placed) -> bool:
        """Tell whether a message, however written, is among them; what a repair made always is."""
        if placed.seq is not None:
            return placed.seq in self.positions
        return placed.rule is None or placed.compaction in self.compactions


def _look_of(context: ViewContext, usage: LastRequest) -> ViewContext:
    """Return the look that a recorded request was made by."""
    known = _known_then(context, usage)
    visible = build_visible_set(context.connection, context.pointer, select_active(known))
    return context._replace(
        records=known,
        visible=visible,
        last=usage.seq,
        now=usage.at,
        turn_over=False,
    )


def _known_then(context: ViewContext, usage: LastRequest) -> list[Compaction]:
    """Return the records that counted where and when a request was made."""
    then = (usage.seq, usage.at)
    return [each for each in context.records if (each.head, each.created_at) <= then]


def _beginning(now: Sight, then: Sight) -> _Begun:
    """Return what a view begins with as a request did."""
    begun = _Begun(set(), set())
    sent, sent_then = _order(now, then.last), _order(then, then.last)
    for each, before in zip(sent, sent_then, strict=False):
        if each != before:
            break
        if isinstance(each, ActiveSummary):
            begun.compactions.add(each.compaction)
        else:
            begun.positions.add(each)
    return begun


def _order(sight: Sight, last: int) -> Iterator[ActiveSummary | int]:
    """Yield what is visible up to a position, in the order in which it is sent.

    Merged summaries stand in the first system message.
    """
    visible = sight.visible
    if sight.policy.summary_role == "merge":
        yield from chain(visible.active_summaries, visible.pinned)
    else:
        yield from chain(visible.pinned, visible.summaries)
    yield from _kept(visible, last, merged=sight.policy.summary_role == "merge")


def _kept(visible: VisibleSet, last: int, *, merged: bool) -> Iterator[ActiveSummary | int]:
    """Yield what is kept up to a position, with what stands for ranges, unless that is merged."""
    next_one = visible.first_kept
    for hole in visible.holes:
        yield from range(next_one, hole.first)
        next_one = hole.last + 1
        if hole.summary and not merged:
            yield hole.summary
    yield from range(next_one, last + 1)


def _is_same(entry: Entry, rules: Rules) -> bool:
    """Tell whether an entry that was there is as it was, by the rules that replaced results then.

    One whose turn was finished and that is whole is short already.
    """
    if entry.seq is None or entry.rule == "summary":
        return True
    was = rules.get(entry.seq)
    rule = None if entry.rule == "repair" else entry.rule
    return was == rule or (was == "tool_output" and rule is None)
