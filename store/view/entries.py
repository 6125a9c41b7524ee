"""What a view says of itself: of each message why it is as it is, of all what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, literal_column, select

from ..database import Row, RowsByKey, Statement, branches, json_sql, message_facts, token_counts
from ..formats import Placed
from ..history import Segment, lines, visible_counts
from ..messages import copy_message, decode_as
from ..policy import Policy
from ..records import Entry, ViewStats
from ..text import truncate_to_line
from ..tokens import ESTIMATE, estimate, message_tokens
from .context import ViewContext
from .judging import Verdict, Verdicts
from .placeholders import MEDIA_RULE
from .read_files import Files
from .rules import explanations

_facts = message_facts
ESTIMATES = Statement(
    select(json_sql.AsObject(_facts.c.seq, _facts.c.tokens)).where(lines.in_run(_facts))
)
"""One text, in a third of the time of as many rows: most views are sent and never explained."""
_counts = token_counts
COUNTS = Statement(
    select(
        _counts.c.seq,
        _counts.c.tokens,
        _counts.c.encoding,
    ).where(lines.in_run(_counts))
)
_of_tree = select(_counts.c.seq).where(_counts.c.tree_id == bindparam("tree_id"))
ANY_COUNT = Statement(_of_tree.limit(literal_column("1")))
"""Few have counted any tokens, and a line may have many runs."""
OWN_BRANCHES = Statement(
    select(branches.c.branch).where(
        branches.c.tree_id == bindparam("tree_id"), visible_counts(branches)
    )
)
NUMBER_OF_COUNTS = Statement(select(func.count()).where(lines.in_run(_counts)))

FILES_LIMIT = 300
"""Code points that an entry spends on the files of a read."""


class Estimates:
    """The estimated tokens of messages, as they were read: one JSON object or several."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def __add__(self, more: Estimates) -> Estimates:
        return Estimates(*self._texts, *more._texts)

    @cached_property
    def by_position(self) -> dict[int, int]:
        """The estimates, by the positions of the messages."""
        read = decode_as(list, f"[{','.join(self._texts)}]")
        return RowsByKey({int(seq): tokens for each in read for seq, tokens in each.items()})


class Counted(NamedTuple):
    """The tokens of stored messages by position.

    There are estimates of all of them, as they were ``read``, and ``counts`` by the tokenizer that
    counted most, of ``stored`` counts by any.
    """

    read: Estimates
    encoding: str
    counts: dict[int, int]
    stored: int

    @property
    def estimates(self) -> dict[int, int]:
        """The estimated tokens of each message."""
        return self.read.by_position

    @property
    def corrections(self) -> int:
        """How many tokens more than the estimates the counts are, together."""
        return sum(tokens - self.estimates[seq] for seq, tokens in self.counts.items())

    def of(self, seq: int) -> int:
        """Return the tokens of the message at a position: counted, else estimated."""
        return self.counts.get(seq) or self.estimates[seq]

    def best(self) -> dict[int, int]:
        """Return the tokens of all the messages as `of` does."""
        known = {seq: tokens for seq, tokens in self.counts.items() if tokens}
        return RowsByKey({**self.estimates, **known}) if known else self.estimates


def counted(context: ViewContext, runs: list[Segment]) -> Counted:
    """Return the tokens of the messages in runs of a line."""
    return _counted(context, runs, _estimates(context, runs))


def _estimates(context: ViewContext, runs: list[Segment]) -> Estimates:
    return Estimates(*(text for (text,) in _rows(ESTIMATES, context, runs)))


def _counted(context: ViewContext, runs: list[Segment], estimates: Estimates) -> Counted:
    counts: dict[str, dict[int, int]] = {ESTIMATE: {}}
    for seq, tokens, encoding in _rows(COUNTS, context, _counted_runs(context, runs)):
        counts.setdefault(encoding, {})[seq] = tokens
    encoding = max(counts, key=lambda name: len(counts[name]))
    stored = sum(map(len, counts.values()))
    return Counted(estimates, encoding, counts[encoding], stored)


def recounted(context: ViewContext, known: Counted, last: int) -> Counted:
    """Return the tokens of what a look sees, from those of the messages up to a position.

    Counts are only ever added, so as long as there are as many they are the same.
    """
    estimates = known.read + _estimates(context, context.shown(last + 1, context.last))
    runs = context.visible_runs()
    numbers = _rows(NUMBER_OF_COUNTS, context, _counted_runs(context, runs))
    stored = sum(number for (number,) in numbers)
    if stored == known.stored:
        return known._replace(read=estimates)
    return _counted(context, runs, estimates)


def _counted_runs(context: ViewContext, runs: list[Segment]) -> list[Segment]:
    """Return the runs that may have counts which the session sees; none where the tree has none."""
    tree = {"tree_id": context.pointer.tree_id}
    if ANY_COUNT.row(context.connection, **tree) is None:
        return []
    own = {*OWN_BRANCHES.values(context.connection, **tree, owner=context.pointer.owner)}
    return [run for run in runs if run.branch in own]


def _rows(
    statement: Statement[Row],
    context: ViewContext,
    runs: list[Segment],
) -> Iterator[Any]:
    """Return the rows of a statement in each run of a line."""
    places = (run.within(context.pointer.tree_id) for run in runs)
    return chain.from_iterable(statement.rows(context.connection, **place) for place in places)


def entries_of(
    policy: Policy,
    placed: list[Placed],
    judged: Verdicts,
    tokens: Counted,
    files: Files,
    pictured: Mapping[int, str],
) -> tuple[Entry, ...]:
    """Return the entry of each message in its place.

    Reads that are replaced name their ``files``; ``pictured`` says why pictures gave way.
    """
    explain = _Explained(judged, explanations(policy), tokens.best(), files, pictured)
    return tuple([explain.entry(each) for each in placed])


class _Explained(NamedTuple):
    """What it takes to say of a message why it is as it is, and what it costs."""

    judged: Verdicts
    reasons: Mapping[str, str]
    tokens: Mapping[int, int]
    files: Files
    pictured: Mapping[int, str]

    def entry(self, placed: Placed) -> Entry:
        """Return the entry of a message."""
        seq = placed.seq
        if seq is None or placed.rule:
            return _entry_of_made(placed)
        whole = self.tokens[seq]
        verdict = self.judged.get(seq)
        if verdict is None and not placed.repair and seq not in self.pictured:
            return Entry(seq, copy_message(placed.message), None, "", whole, 0)
        rule, reason = self._said_of(seq, verdict)
        if rule is None:
            repaired = "repair" if placed.repair else None
            return Entry(
                seq, copy_message(placed.message), repaired, placed.repair or reason, whole, 0
            )
        tokens = message_tokens(placed.message, estimate)
        return Entry(seq, copy_message(placed.message), rule, reason, tokens, whole - tokens)

    def _said_of(self, seq: int, verdict: Verdict | None) -> tuple[str | None, str]:
        """Return the rule that changed a message, if any, and why it is as it is."""
        if seq in self.pictured:
            return MEDIA_RULE, self.reasons[self.pictured[seq]]
        return (None, "") if verdict is None else (verdict.rule, self._reason(verdict))

    def _reason(self, verdict: Verdict) -> str:
        reason = self.reasons[verdict.why]
        files = self.files.get(verdict.seq)
        if files:
            reason += f": {truncate_to_line(', '.join(files), FILES_LIMIT)}"
        return reason


def _entry_of_made(placed: Placed) -> Entry:
    """Return the entry of a message that a repair made, or that a summary is in."""
    tokens = message_tokens(placed.message, estimate)
    rule = placed.rule or "repair"
    return Entry(placed.seq, copy_message(placed.message), rule, placed.repair or "", tokens, 0)


def stats_of(
    last: int,
    stored: int,
    entries: Sequence[Entry],
    tokens: Counted,
    *,
    left_out: tuple[int, ...],
    unchanged_tokens: int | None,
) -> ViewStats:
    """Return the totals of a view up to a position, before which so many tokens are stored.

    ``left_out`` are visible positions that are in no entry.
    """
    shown = sum(tokens.estimates.values())
    hidden = _Hidden(last - len(tokens.estimates), stored - shown)
    saved = _saved_by_rule(entries) | _saved_by_summaries(entries, tokens, hidden)
    return ViewStats(
        messages=len(entries),
        raw_messages=last,
        raw_tokens=stored + tokens.corrections,
        replaced=dict(Counter(entry.rule for entry in entries if entry.rule)),
        tokens=sum(entry.tokens for entry in entries),
        tokens_saved=sum(saved.values()),
        saved_by_rule=saved,
        first_changed=_first_changed(entries, left_out),
        counted_by=_counted_by(entries, tokens),
        unchanged_tokens=unchanged_tokens,
        left_out=left_out,
        hidden_messages=hidden.messages,
        hidden_tokens=hidden.tokens,
    )


class _Hidden(NamedTuple):
    """What compactions hide of a line."""

    messages: int
    tokens: int


def _saved_by_summaries(
    entries: Sequence[Entry], tokens: Counted, hidden: _Hidden
) -> dict[str, int]:
    """Return what compactions save: what they hide less the summaries in its place."""
    if not hidden.messages:
        return {}
    summaries = [entry for entry in entries if entry.rule == "summary"]
    merged_into = sum(tokens.of(entry.seq) for entry in summaries if entry.seq)
    cost = sum(entry.tokens for entry in summaries) - merged_into
    return {"summary": hidden.tokens - cost}


def _counted_by(entries: Sequence[Entry], tokens: Counted) -> str:
    """Return what counted all of a view's messages: a tokenizer, else the estimate."""
    all_counted = all(entry.seq in tokens.counts for entry in entries if entry.seq)
    return tokens.encoding if all_counted else ESTIMATE


def _saved_by_rule(entries: Sequence[Entry]) -> dict[str, int]:
    saved: Counter[str] = Counter()
    for entry in entries:
        if entry.tokens_saved:
            saved[str(entry.rule)] += entry.tokens_saved
    return dict(saved)


def _first_changed(entries: Sequence[Entry], left_out: Sequence[int]) -> int | None:
    """Return the first position that is not as in the raw line.

    What stands there was replaced, moved or left out, or stands behind something made.
    """
    return min(
        chain(islice(_changed(entries), 1), left_out[:1]),
        default=None,
    )


def _changed(entries: Sequence[Entry]) -> Iterator[int]:
    """Yield the places whose message is not the stored one of that position."""
    for place, entry in enumerate(entries, 1):
        if entry.rule is not None or entry.seq != place:
            yield place
