"""The entries and totals of a view: the reason for each message as it is sent, and the cost of all.

They are built on first use, from narrow rows that were read with the view, in its transaction. One
total is about the prompt cache: the tokens at the beginning of the view that are the same as in the
last request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, repeat, takewhile
from operator import is_
from typing import NamedTuple

from ..database import pause_gc
from ..formats import AcceptedNames, PlacedMessage, describe_renames, get_format
from ..messages import WIRE_KEY, copy_message
from ..records import Entry, LeftOut, ViewStats, make_entry
from ..text import truncate_to_line
from ..tokens import ESTIMATE_NAME, count_message_tokens, estimate
from ..tools import RECALL_TOOL_NAME
from .counts import TokenCounts
from .placeholders import MEDIA_RULE, UNREADABLE_MEDIA
from .read_files import ReadFiles
from .rules import RULE_REASONS, render_explanations
from .sent_digest import KeyedMessages, SentDigest
from .verdicts import Verdicts, load_judged_line
from .visible_set import (
    ActiveSummary,
    ViewContext,
    ViewSight,
    build_visible_set,
    select_active_records,
)

FILES_LIMIT = 300
"""Code points that an entry spends on the files of a read."""


class EarlierRequest(NamedTuple):
    """An earlier request: its sight, and the verdicts on the results."""

    sight: ViewSight
    judged: Verdicts


def find_earlier_request(
    context: ViewContext, render: Callable[[], list[PlacedMessage]]
) -> EarlierRequest | None:
    """Return the request before a view, None if none was recorded.

    It is the last one of `record_usage`, at its position and moment, by the same policy. ``render``
    returns the messages of the view.
    """
    usage = context.load_last_request()
    if usage is None:
        return None
    moment = (usage.seq, usage.at)
    known = [each for each in context.records if (each.head, each.created_at) <= moment]
    visible = build_visible_set(context.connection, context.pointer, select_active_records(known))
    then = context._replace(
        records=known,
        visible=visible,
        last=usage.seq,
        now=usage.at,
        turn_over=False,
    )
    sight = then.sight
    if context.visible.first_kept != visible.first_kept:
        had = _list_common_messages(context.sight, sight, render())
        if not any(each.message["role"] == "tool" for each in had):
            return EarlierRequest(sight, {})
    return EarlierRequest(sight, load_judged_line(then, "before").final)


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
    rules: dict[int, str | None] = {seq: verdict.rule for seq, verdict in request.judged.items()}
    # All of them if no picture is ever sent; all before the current turn if its pictures are sent.
    # Unreadable pictures were always replaced.
    named = [entry for entry in there if entry.rule == MEDIA_RULE]
    if sight.policy.picture_keep:
        named = [entry for entry in named if entry.reason == RULE_REASONS[UNREADABLE_MEDIA]]
    elif sight.policy.picture_current_turn:
        spoken = (each.seq for each in there if each.seq and each.message["role"] == "user")
        began = max(spoken, default=0)
        named = [entry for entry in named if entry.seq and entry.seq < began]
    rules |= {entry.seq: MEDIA_RULE for entry in named if entry.seq}
    tokens = 0
    for entry in there:
        if entry.seq is not None and entry.rule != "summary":
            was = rules.get(entry.seq)
            rule = None if entry.rule == "repair" else entry.rule
            # A whole result that the tool-output rule shortened then was short already.
            if was != rule and not (was == "tool_output" and rule is None):
                break
        tokens += entry.tokens
    return tokens


class _CommonBeginning(NamedTuple):
    """The common beginning of a view and a request: positions, and compactions with summaries."""

    positions: set[int]
    compactions: set[int | None]

    def has(self, placed: PlacedMessage) -> bool:
        """Tell whether a message is in it, in any form; messages made by a repair always are."""
        if placed.seq is not None:
            return placed.seq in self.positions
        return placed.rule is None or placed.compaction in self.compactions


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


class ExplanationInputs(NamedTuple):
    """The values read with a view: ``stored`` are the tokens of the whole line.

    ``names`` are the names that its format accepts, None for a format without names. Entries of
    replaced reads name their ``files``; ``pictured`` has the reasons for replaced media.
    """

    sight: ViewSight
    names: AcceptedNames | None
    placed: list[PlacedMessage]
    judged: Verdicts
    tokens: TokenCounts
    files: ReadFiles
    pictured: dict[int, str]
    stored: int
    request: EarlierRequest | None
    left_out: dict[int, LeftOut]
    format: str

    @property
    def misses(self) -> int:
        """The number of calls of recall."""
        calls = (call for placed in self.placed for call in placed.calls)
        return sum(call.name == RECALL_TOOL_NAME for call in calls)


class Explanation:
    """The entries and totals of a view; ``load_inputs`` is called when the first is asked for."""

    def __init__(self, load_inputs: Callable[[], ExplanationInputs]) -> None:
        self._load_inputs = load_inputs
        self.basis: RequestBasis | None = None
        """The values that a record of the view needs, only of a view that is recorded."""

    @cached_property
    def inputs(self) -> ExplanationInputs:
        """The values from which they are built."""
        return self._load_inputs()

    @cached_property
    def entries(self) -> list[Entry]:
        """The reason for each message as it is sent; the caller may change them."""
        inputs, shared = self.inputs, self.shared_entries
        if inputs.names is None:
            more: Iterable[str] = repeat("")
        else:
            more = describe_renames(inputs.placed, inputs.names)
        with pause_gc(len(shared)):
            return [
                entry._replace(
                    message=copy_message(entry.message),
                    reason="; ".join(filter(None, (entry.reason, renamed))),
                )
                for entry, renamed in zip(shared, more, strict=False)
            ]

    @cached_property
    def shared_entries(self) -> tuple[Entry, ...]:
        """The same entries without reasons for changed names; their messages are shared."""
        inputs = self.inputs
        with pause_gc(len(inputs.placed)):
            return build_entries(inputs)

    @cached_property
    def stats(self) -> ViewStats:
        """The cost of the messages, and the savings of the rules."""
        return _build_stats(self.inputs, self.shared_entries)

    @cached_property
    def _all_left_out(self) -> tuple[LeftOut, ...]:
        inputs = self.inputs
        left_out = [*inputs.left_out.values()]
        for placed in get_format(inputs.format).unsent(inputs.placed):
            kind = str(placed.message[WIRE_KEY]["block"].get("type", "item"))
            reason = "without the item that it belongs to it would be refused"
            left_out.append(LeftOut(placed.seq or 0, kind, reason))
        return tuple(sorted(left_out))

    @property
    def left_out(self) -> list[LeftOut]:
        """The visible messages that are not sent; the caller may change the list."""
        return [*self._all_left_out]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Explanation):
            return NotImplemented
        return (self.entries, self.stats) == (other.entries, other.stats)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Explanation({self.stats})"


class PlacedCosts(NamedTuple):
    """The tokens of each message of a view, and a hash of the rules and facts that decide its text.

    ``counts`` is the number of stored counts that the tokens are made of.
    """

    placed: list[PlacedMessage]
    tokens: list[int]
    keys: list[int]
    counts: int


def measure_placed(inputs: ExplanationInputs, known: PlacedCosts | None) -> PlacedCosts:
    """Return the costs of a view's messages without their entries: a record needs no reasons.

    The same messages at the beginning have the costs that are ``known`` of an earlier view.
    """
    placed, counts, same = inputs.placed, inputs.tokens.stored, 0
    tokens, keys = [], []
    if known and known.counts == counts:
        same = sum(takewhile(bool, map(is_, known.placed, placed)))
        tokens, keys = known.tokens[:same], known.keys[:same]
    new = placed[same:]
    stored = inputs.tokens.find({each.seq for each in new if each.seq and not each.rule})
    for each in new:
        seq, content = each.seq, each.message.get("content")
        verdict = inputs.judged.get(seq or 0)
        rule = (verdict and verdict.rule) or inputs.pictured.get(seq or 0) or each.rule
        is_whole = seq is not None and rule is None
        tokens.append(
            stored[seq or 0] if is_whole else count_message_tokens(each.message, estimate)
        )
        keys.append(hash((seq, rule, content if isinstance(content, str) else None)))
    return PlacedCosts(placed, tokens, keys, counts)


class RequestBasis(NamedTuple):
    """What a record of a view needs besides its messages.

    ``kinds`` are the kinds of tools in force, as JSON; ``policy`` is the policy's text, and
    ``project_root`` the folder to which paths in results are relative. ``digest`` is that of the
    request before; ``keyed`` are the messages if this one can continue it.
    """

    kinds: str
    policy: str
    project_root: str | None
    costs: PlacedCosts
    digest: SentDigest
    keyed: KeyedMessages | None


def build_entries(inputs: ExplanationInputs) -> tuple[Entry, ...]:
    """Return the entry of each message in its place, with that message itself."""
    reasons = render_explanations(inputs.sight.policy)
    tokens = inputs.tokens.best()
    judged, pictured, read_files = inputs.judged, inputs.pictured, inputs.files
    entries = []
    for placed in inputs.placed:
        seq, message = placed.seq, placed.message
        if seq is None or placed.rule:  # a repair made it, or it holds a summary
            cost = count_message_tokens(placed.message, estimate)
            rule = placed.rule or "repair"
            entries.append(Entry(seq, message, rule, placed.repair or "", cost, 0))
            continue
        changed_by: str | None = None
        reason = ""
        verdict = judged.get(seq)
        if seq in pictured:
            changed_by, reason = MEDIA_RULE, reasons[pictured[seq]]
        elif verdict is not None:
            changed_by, reason = verdict.rule, reasons[verdict.why]
            if files := read_files.get(seq):
                reason += f": {truncate_to_line(', '.join(files), FILES_LIMIT)}"
        whole = tokens[seq]
        if changed_by is None:
            repaired = "repair" if placed.repair else None
            why = placed.repair or reason
            entries.append(make_entry((seq, message, repaired, why, whole, 0)))
        else:
            cost = inputs.tokens.estimate_replaced(seq, message)
            entries.append(Entry(seq, message, changed_by, reason, cost, whole - cost))
    return tuple(entries)


def _build_stats(inputs: ExplanationInputs, entries: tuple[Entry, ...]) -> ViewStats:
    """Return the totals of a view."""
    tokens, last = inputs.tokens, inputs.sight.last
    in_entries = {each.seq for each in inputs.placed}
    left_out = tuple(seq for seq in tokens.estimates if seq not in in_entries)
    hidden_messages = last - len(tokens.estimates)
    hidden_tokens = inputs.stored - sum(tokens.estimates.values())
    saved: Counter[str] = Counter()
    for entry in entries:
        if entry.tokens_saved:
            saved[str(entry.rule)] += entry.tokens_saved
    saved_by_rule = dict(saved)
    if hidden_messages:
        saved_by_rule["summary"] = hidden_tokens - _sum_summary_tokens(entries, tokens)
    # Entries that differ from the raw line: replaced, moved, or after one left out or made up.
    moved = (
        place
        for place, entry in enumerate(entries, 1)
        if entry.rule is not None or entry.seq != place
    )
    all_counted = all(entry.seq in tokens.counts for entry in entries if entry.seq)
    return ViewStats(
        messages=len(entries),
        raw_messages=last,
        raw_tokens=inputs.stored + tokens.corrections,
        replaced=dict(Counter(entry.rule for entry in entries if entry.rule)),
        tokens=sum(entry.tokens for entry in entries),
        tokens_saved=sum(saved_by_rule.values()),
        saved_by_rule=saved_by_rule,
        first_changed=min(chain(islice(moved, 1), left_out[:1]), default=None),
        counted_by=tokens.encoding if all_counted else ESTIMATE_NAME,
        unchanged_tokens=count_unchanged_tokens(
            inputs.sight, inputs.request, inputs.placed, entries
        ),
        left_out=left_out,
        hidden_messages=hidden_messages,
        hidden_tokens=hidden_tokens,
        misses=inputs.misses,
    )


def _sum_summary_tokens(entries: tuple[Entry, ...], tokens: TokenCounts) -> int:
    """Return the tokens of summaries, without those of the messages they are merged into."""
    summaries = [entry for entry in entries if entry.rule == "summary"]
    merged_into = sum(tokens.tokens_at(entry.seq) for entry in summaries if entry.seq)
    return sum(entry.tokens for entry in summaries) - merged_into
