"""The part of a view that a prompt cache still holds: the same beginning as the last request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from typing import NamedTuple

from ..formats import PlacedMessage
from ..history import LastRequest, find_last_usage
from ..policy import Policy
from ..records import Compaction, Entry
from .context import ViewContext
from .judging import Verdicts
from .placeholders import MEDIA_RULE, UNREADABLE_MEDIA
from .rejudging import load_earlier_verdicts
from .rules import RULE_REASONS
from .visible_set import ActiveSummary, VisibleSet, build_visible_set, select_active_records

RulesByPosition = dict[int, str | None]
"""The rule that replaced each result in a request, by position."""


class ViewSight(NamedTuple):
    """The policy, visible set and last position of a look, without its connection."""

    policy: Policy
    visible: VisibleSet
    last: int


class EarlierRequest(NamedTuple):
    """An earlier request: its sight, and the verdicts on the results."""

    sight: ViewSight
    judged: Verdicts


def build_view_sight(context: ViewContext) -> ViewSight:
    """Return the sight of a look."""
    return ViewSight(context.policy, context.visible, context.last)


def find_earlier_request(
    context: ViewContext, placed: list[PlacedMessage]
) -> EarlierRequest | None:
    """Return the request before a view of these messages, None if none was recorded.

    It is the last one of `record_usage`, at its position and moment, by the same policy.
    """
    usage = find_last_usage(context.raw, context.last)
    if usage is None:
        return None
    known = _list_earlier_records(context, usage)
    visible = build_visible_set(context.connection, context.pointer, select_active_records(known))
    then = context._replace(
        records=known,
        visible=visible,
        last=usage.seq,
        now=usage.at,
        turn_over=False,
    )
    if _has_results(context, then, placed):
        return EarlierRequest(build_view_sight(then), load_earlier_verdicts(then))
    return EarlierRequest(build_view_sight(then), {})


def _has_results(context: ViewContext, then: ViewContext, placed: list[PlacedMessage]) -> bool:
    """Tell whether the common beginning of a view and a request may include a result."""
    if context.visible.first_kept == then.visible.first_kept:
        return True
    had = _list_common_messages(build_view_sight(context), build_view_sight(then), placed)
    return any(each.message["role"] == "tool" for each in had)


def _list_common_messages(
    now: ViewSight, then: ViewSight, placed: list[PlacedMessage]
) -> Iterator[PlacedMessage]:
    """Return the messages of the common beginning of a view and a request."""
    begun = _CommonBeginning(set(), set())
    sent, sent_then = (
        _list_in_request_order(now, then.last),
        _list_in_request_order(then, then.last),
    )
    for each, before in zip(sent, sent_then, strict=False):
        if each != before:
            break
        if isinstance(each, ActiveSummary):
            begun.compactions.add(each.compaction)
        else:
            begun.positions.add(each)
    return takewhile(begun.has, placed)


def count_unchanged_tokens(
    sight: ViewSight,
    request: EarlierRequest | None,
    placed: list[PlacedMessage],
    entries: Sequence[Entry],
) -> int | None:
    """Return how many tokens at the beginning of a view are the same in the request before it.

    ``placed`` and ``entries`` are the messages of the view, one for one. None without a request.
    """
    if request is None:
        return None
    had = _list_common_messages(sight, request.sight, placed)
    there = [entry for entry, _ in zip(entries, had, strict=False)]
    rules = {seq: verdict.rule for seq, verdict in request.judged.items()}
    # All of them if no picture is ever sent; all before the current turn if its pictures are sent.
    # Unreadable pictures were always replaced.
    named = [entry for entry in there if entry.rule == MEDIA_RULE]
    if sight.policy.picture_keep:
        named = [entry for entry in named if entry.reason == RULE_REASONS[UNREADABLE_MEDIA]]
    elif sight.policy.picture_current_turn:
        spoken = (each.seq for each in there if each.seq and each.message["role"] == "user")
        began = max(spoken, default=0)
        named = [entry for entry in named if entry.seq and entry.seq < began]
    return _count_same_tokens(
        there, {**rules, **{entry.seq: MEDIA_RULE for entry in named if entry.seq}}
    )


def _count_same_tokens(there: list[Entry], rules: RulesByPosition) -> int:
    """Return the tokens of the entries before the first one that has changed."""
    same = takewhile(lambda entry: _is_unchanged_entry(entry, rules), there)
    return sum(entry.tokens for entry in same)


class _CommonBeginning(NamedTuple):
    """The common beginning of a view and a request: positions, and compactions with summaries."""

    positions: set[int]
    compactions: set[int | None]

    def has(self, placed: PlacedMessage) -> bool:
        """Tell whether a message is in it, in any form; messages made by a repair always are."""
        if placed.seq is not None:
            return placed.seq in self.positions
        return placed.rule is None or placed.compaction in self.compactions


def _list_earlier_records(context: ViewContext, usage: LastRequest) -> list[Compaction]:
    """Return the records that counted where and when a request was made."""
    then = (usage.seq, usage.at)
    return [each for each in context.records if (each.head, each.created_at) <= then]


def _list_in_request_order(sight: ViewSight, last: int) -> Iterator[ActiveSummary | int]:
    """Yield the visible positions and summaries up to a position, in the order of the request.

    Merged summaries are in the first system message.
    """
    visible = sight.visible
    if sight.policy.summary_role == "merge":
        yield from chain(visible.active_summaries, visible.pinned)
    else:
        yield from chain(visible.pinned, visible.summaries)
    merged = sight.policy.summary_role == "merge"
    next_one = visible.first_kept
    for hole in visible.holes:
        yield from range(next_one, hole.first)
        next_one = hole.last + 1
        if hole.summary and not merged:
            yield hole.summary
    yield from range(next_one, last + 1)


def _is_unchanged_entry(entry: Entry, rules: RulesByPosition) -> bool:
    """Tell whether an entry is the same as before, given the rules that replaced results then.

    A whole result that the tool-output rule shortened then was short already, so it is the same.
    """
    if entry.seq is None or entry.rule == "summary":
        return True
    was = rules.get(entry.seq)
    rule = None if entry.rule == "repair" else entry.rule
    return was == rule or (was == "tool_output" and rule is None)
