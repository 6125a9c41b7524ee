"""The entries and totals of a view: the reason for each message as it is sent, and the cost of all.

They are built on first use, from narrow rows that were read with the view, in its transaction.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from ..formats import AcceptedNames, PlacedMessage, describe_renames, get_format
from ..messages import WIRE_KEY, copy_message
from ..records import Entry, LeftOut, ViewStats
from ..text import truncate_to_line
from ..tokens import ESTIMATE_NAME, count_message_tokens, estimate
from .counts import TokenCounts
from .judging import Verdicts
from .placeholders import MEDIA_RULE
from .prompt_cache import EarlierRequest, ViewSight, count_unchanged_tokens
from .read_files import ReadFiles
from .rendering import DROPPED_BY_PAIRING, UnsentItem
from .rules import render_explanations

FILES_LIMIT = 300
"""Code points that an entry spends on the files of a read."""
UNPAIRED_REASONS = {
    "tool": "a result of no call",
    "assistant": "it says nothing but calls without results",
}
"""Why pairing leaves a message out, by its role."""


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
    left_out: dict[int, UnsentItem]
    format: str


class Explanation:
    """The entries and totals of a view."""

    def __init__(self, inputs: ExplanationInputs) -> None:
        self._inputs = inputs

    @cached_property
    def entries(self) -> list[Entry]:
        """The reason for each message as it is sent; the caller may change the list."""
        return [*self.shared_entries]

    @cached_property
    def shared_entries(self) -> tuple[Entry, ...]:
        """The same entries, in a tuple that is shared."""
        if self._inputs.names is None:
            return self.entries_without_names
        reasons = describe_renames(self._inputs.placed, self._inputs.names)
        entries = []
        for entry, more in zip(self.entries_without_names, reasons, strict=True):
            reason = "; ".join(filter(None, (entry.reason, more)))
            entries.append(entry._replace(reason=reason) if more else entry)
        return tuple(entries)

    @cached_property
    def entries_without_names(self) -> tuple[Entry, ...]:
        """The entries without the reasons for changed ids and names of tools."""
        return build_entries(self._inputs)

    @cached_property
    def stats(self) -> ViewStats:
        """The cost of the messages, and the savings of the rules."""
        return _build_stats(self._inputs, self.shared_entries)

    @cached_property
    def _all_left_out(self) -> tuple[LeftOut, ...]:
        inputs = self._inputs
        left_out = []
        for seq, (kind, own_format) in inputs.left_out.items():
            if own_format is None:
                reason = "nothing in it is for a chat"
            elif own_format == DROPPED_BY_PAIRING:
                reason = UNPAIRED_REASONS[kind]
            else:
                reason = f"only the format {own_format} has it"
            left_out.append(LeftOut(seq, str(kind), reason))
        for placed in get_format(inputs.format).unsent(inputs.placed):
            kind = str(placed.message[WIRE_KEY]["block"]["type"])
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
        return (self.shared_entries, self.stats) == (other.shared_entries, other.stats)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Explanation({self.stats})"


def build_entries(inputs: ExplanationInputs) -> tuple[Entry, ...]:
    """Return the entry of each message in its place."""
    reasons = render_explanations(inputs.sight.policy)
    tokens = inputs.tokens.best()
    entries = []
    for placed in inputs.placed:
        seq, message = placed.seq, copy_message(placed.message)
        if seq is None or placed.rule:  # a repair made it, or it holds a summary
            cost = count_message_tokens(placed.message, estimate)
            rule = placed.rule or "repair"
            entries.append(Entry(seq, message, rule, placed.repair or "", cost, 0))
            continue
        changed_by: str | None = None
        reason = ""
        verdict = inputs.judged.get(seq)
        if seq in inputs.pictured:
            changed_by, reason = MEDIA_RULE, reasons[inputs.pictured[seq]]
        elif verdict is not None:
            changed_by, reason = verdict.rule, reasons[verdict.why]
            if files := inputs.files.get(seq):
                reason += f": {truncate_to_line(', '.join(files), FILES_LIMIT)}"
        whole = tokens[seq]
        if changed_by is None:
            repaired = "repair" if placed.repair else None
            entries.append(Entry(seq, message, repaired, placed.repair or reason, whole, 0))
        else:
            cost = count_message_tokens(placed.message, estimate)
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
    )


def _sum_summary_tokens(entries: tuple[Entry, ...], tokens: TokenCounts) -> int:
    """Return the tokens of summaries, without those of the messages they are merged into."""
    summaries = [entry for entry in entries if entry.rule == "summary"]
    merged_into = sum(tokens.tokens_at(entry.seq) for entry in summaries if entry.seq)
    return sum(entry.tokens for entry in summaries) - merged_into
