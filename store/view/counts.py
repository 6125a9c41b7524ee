"""The number of messages and tokens of a view; only narrow rows are read.

**Messages** are counted as those of a chat, in whatever format they came and are sent: an answer
is one message, even if it came in several items, and so is each result of a tool. Messages that
the view makes up count like stored ones: a result for a call without result, a call for a result
without call, and summaries. Pictures that a chat sends after their results are counted as part of
the results.

**Tokens** are estimated for every message when it is stored. For some there are also counts by a
tokenizer, which replace the estimates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, func, literal_column, select

from ..database import (
    BIG_INTEGER,
    Row,
    RowsByKey,
    Statement,
    branches,
    json_sql,
    message_facts,
    messages,
    token_counts,
    tool_calls,
    tool_results,
)
from ..formats import ITEM_FORMAT
from ..history import IS_CALL, Segment, build_segments, lines, match_visible_counts
from ..messages import Message, decode_as
from ..tokens import ESTIMATE_NAME, count_message_tokens, estimate
from .visible_set import ViewContext

_view_segments = build_segments()
_f, _m, _c, _r, _t = message_facts, messages, tool_calls, tool_results, token_counts
_ASSISTANT: ColumnElement[str] = literal_column("'assistant'")
_role_before = func.lag(_f.c.role).over(order_by=_f.c.seq).label("role_before")
_ordered_facts = (
    select(_f.c.branch, _f.c.seq, _f.c.role, _role_before)
    .select_from(_view_segments)
    .join(_f, lines.match_segments(_f, _view_segments))
    .cte("in_order")
)
_is_stored = and_(
    _m.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
    _m.c.branch == _ordered_facts.c.branch,
    _m.c.seq == _ordered_facts.c.seq,
)
CONTINUED_ANSWERS = Statement(
    select(_ordered_facts.c.seq)
    .join(_m, _is_stored)
    .where(_ordered_facts.c.role == _ASSISTANT)
    .where(_ordered_facts.c.role_before == _ASSISTANT)
    .where(_m.c.wire_format == literal_column(f"'{ITEM_FORMAT}'"))
    .order_by(_ordered_facts.c.seq)
)
"""The items from ``start`` to ``last`` that continue an answer: another item comes before."""
_is_call_of_fact = and_(*(_f.c[name] == _c.c[name] for name in ("tree_id", "branch", "seq")))
RUN_CALL_COUNT = Statement(
    select(func.count())
    .select_from(_c)
    .join(_f, _is_call_of_fact)
    .where(lines.match_run(_c), _f.c.role == _ASSISTANT, IS_CALL)
)
RUN_ANSWERS = Statement(select(_r.c.call_seq, _r.c.call_position).where(lines.match_run(_r)))
TOKEN_ESTIMATES = Statement(
    select(json_sql.JsonObjectText(_f.c.seq, _f.c.tokens)).where(lines.match_run(_f))
)
"""One text takes a third of the time of the rows, and most views are never explained."""
STORED_TOKEN_COUNTS = Statement(
    select(_t.c.seq, _t.c.tokens, _t.c.encoding).where(lines.match_run(_t))
)
OWN_BRANCHES = Statement(
    select(branches.c.branch).where(
        branches.c.tree_id == bindparam("tree_id"), match_visible_counts(branches)
    )
)
NUMBER_OF_COUNTS = Statement(select(func.count()).where(lines.match_run(_t)))


def count_view_messages(context: ViewContext) -> int:
    """Return how many messages a line's view has, without building it.

    The number is an upper bound if the policy leaves out calls without results or keeps them open.
    """
    visible = context.visible
    key = ("messages", context.last, visible.first_kept, visible.pinned, visible.ranges)
    if key not in context.cache.memo:
        ranges = [*visible.shown_ranges(visible.first_kept, context.last)]
        positions = sum(last - first + 1 for first, last in ranges)
        items = sum(len(find_continuations(context, *each)) for each in ranges)
        stored = positions - items + len(visible.pinned)
        context.cache.memo[key] = stored + _count_made_up_messages(context)
    return int(context.cache.memo[key]) + len(visible.active_summaries)


def find_continuations(context: ViewContext, first: int, last: int) -> list[int]:
    """Return the positions of a range that continue the answer before them, in order."""
    key = ("continued", first, last)
    if key not in context.cache.memo:
        places = {**context.pointer.line, "start": first, "last": last}
        context.cache.memo[key] = CONTINUED_ANSWERS.values(context.connection, **places)
    positions: list[int] = context.cache.memo[key]
    return positions


def _count_made_up_messages(context: ViewContext) -> int:
    """Return how many messages a view makes up, less the results that it leaves out.

    If a call has two results, one is sent.
    """
    visible, policy = context.visible, context.policy
    runs = [run.within(context.pointer.tree_id) for run in context.visible_runs()]
    calls = sum(RUN_CALL_COUNT.value(context.connection, **run) for run in runs)
    answered: set[tuple[int, int]] = set()
    orphans = doubles = 0
    for run in runs:
        for seq, position in RUN_ANSWERS.rows(context.connection, **run):
            is_visible = seq is not None and (
                seq in visible.pinned or (seq >= visible.first_kept and visible.shows(seq))
            )
            if not is_visible:
                orphans += 1
            elif (seq, position) in answered:
                doubles += 1
            else:
                answered.add((seq, position))
    results = 0 if policy.unanswered == "drop" else calls - len(answered)
    return results - doubles + (orphans if policy.orphans == "adopt" else -orphans)


class Estimates:
    """The estimated tokens of messages as read: one JSON object or several."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def __add__(self, more: Estimates) -> Estimates:
        both = Estimates(*self._texts, *more._texts)
        if "by_position" in vars(self):  # a line that grows is not parsed anew for each view
            both.by_position = RowsByKey({**self.by_position, **more.by_position})
        return both

    @cached_property
    def by_position(self) -> dict[int, int]:
        """The estimates, by the positions of the messages."""
        objects = decode_as(list, f"[{','.join(self._texts)}]")
        return RowsByKey({int(seq): tokens for each in objects for seq, tokens in each.items()})

    def find(self, positions: Collection[int]) -> dict[int, int]:
        """Return the estimates of some messages; the newest are found without parsing all texts."""
        found: dict[int, int] = {}
        for text in reversed(self._texts):
            if len(found) == len(positions):
                break
            here = decode_as(dict, text)
            found |= {seq: here[str(seq)] for seq in positions if str(seq) in here}
        return RowsByKey(found)


class TokenCounts(NamedTuple):
    """The tokens of stored messages by position.

    ``read`` has the estimates of all messages, ``counts`` the counts of the tokenizer that counted
    most of them; ``stored`` is the number of counts by any tokenizer. ``replaced`` has the messages
    that were last sent in other words, each with its estimate.
    """

    read: Estimates
    encoding: str
    counts: dict[int, int]
    stored: int
    replaced: dict[int, tuple[Message, int]]

    @property
    def estimates(self) -> dict[int, int]:
        """The estimated tokens of each message."""
        return self.read.by_position

    @property
    def corrections(self) -> int:
        """The sum of the counts less the sum of their estimates."""
        return sum(tokens - self.estimates[seq] for seq, tokens in self.counts.items())

    def tokens_at(self, seq: int) -> int:
        """Return the tokens of the message at a position: counted, else estimated."""
        return self.counts.get(seq) or self.estimates[seq]

    def estimate_replaced(self, seq: int, message: Message) -> int:
        """Return the tokens of a message that is sent in other words; the same is counted once."""
        known, tokens = self.replaced.get(seq, (None, 0))
        if known is not message:
            tokens = count_message_tokens(message, estimate)
            self.replaced[seq] = (message, tokens)
        return tokens

    def find(self, positions: Collection[int]) -> dict[int, int]:
        """Return the tokens of some messages, each as in `tokens_at`."""
        counted = {seq: count for seq in positions if (count := self.counts.get(seq))}
        return RowsByKey({**self.read.find(positions), **counted})

    def best(self) -> dict[int, int]:
        """Return the tokens of all messages, each as in `tokens_at`."""
        counted = {seq: tokens for seq, tokens in self.counts.items() if tokens}
        return RowsByKey({**self.estimates, **counted}) if counted else self.estimates


def load_token_counts(context: ViewContext, runs: list[Segment]) -> TokenCounts:
    """Return the tokens of the messages in runs of a line."""
    return _load_counts(context, runs, _load_estimates(context, runs))


def send_estimates(context: ViewContext, runs: list[Segment]) -> None:
    """Send a server the queries for the tokens of runs ahead."""
    for run in runs:
        TOKEN_ESTIMATES.send(context.connection, **run.within(context.pointer.tree_id))


def extend_token_counts(context: ViewContext, known: TokenCounts, last: int) -> TokenCounts:
    """Return the tokens of all visible messages, from those of the messages up to a position.

    Counts are only ever added, so an equal number of counts means the same counts.
    """
    estimates = known.read + _load_estimates(context, context.shown(last + 1, context.last))
    runs = context.visible_runs()
    numbers = _load_run_rows(NUMBER_OF_COUNTS, context, _list_counted_runs(context, runs))
    if sum(number for (number,) in numbers) == known.stored:
        return known._replace(read=estimates)
    return _load_counts(context, runs, estimates)


def _load_estimates(context: ViewContext, runs: list[Segment]) -> Estimates:
    return Estimates(*(text for (text,) in _load_run_rows(TOKEN_ESTIMATES, context, runs)))


def _load_counts(context: ViewContext, runs: list[Segment], estimates: Estimates) -> TokenCounts:
    counts: dict[str, dict[int, int]] = {ESTIMATE_NAME: {}}
    for seq, tokens, encoding in _load_run_rows(
        STORED_TOKEN_COUNTS, context, _list_counted_runs(context, runs)
    ):
        counts.setdefault(encoding, {})[seq] = tokens
    encoding = max(counts, key=lambda name: len(counts[name]))
    stored = sum(map(len, counts.values()))
    return TokenCounts(estimates, encoding, counts[encoding], stored, {})


def _list_counted_runs(context: ViewContext, runs: list[Segment]) -> list[Segment]:
    """Return the runs that may have counts visible to the session; none if the tree has none."""
    if not context.state.has_counts:
        return []
    asked = {"tree_id": context.pointer.tree_id, "owner": context.pointer.owner}
    own = {*OWN_BRANCHES.values(context.connection, **asked)}
    return [run for run in runs if run.branch in own]


def _load_run_rows(
    statement: Statement[Row],
    context: ViewContext,
    runs: list[Segment],
) -> Iterator[Any]:
    """Return the rows of a statement in each run of a line."""
    places = (run.within(context.pointer.tree_id) for run in runs)
    return chain.from_iterable(statement.rows(context.connection, **place) for place in places)
