"""The view: what is sent to the model, computed from a line by the rules of a policy; building it changes no byte.

First the rules judge the narrow tables, then one scan of each run reads the messages, leaving the contents that will
be replaced unread; last, calls and results are paired and everything is written for the API.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Table, bindparam, case, null, select

from . import lines, rules
from .clock import Now, given
from .collector import paused
from .compactions import Standing, Visible, active, records, sent, shown
from .errors import InvalidValue
from .formats import FORMATS
from .history import stored_calls
from .lines import Pointer, Segment
from .messages import assemble
from .policy import DEFAULT, Policy, checked
from .prefix import unchanged_tokens
from .records import Entry, View, ViewStats
from .repair import Item, Placed, arrange, merged
from .schema import message_facts, messages, token_counts
from .shortening import short_form
from .statements import Row, Statement
from .tokens import ESTIMATE, estimate, message_tokens
from .verdicts import WHOLE, Verdict, explanations, placeholder, verdicts

log = logging.getLogger(__name__)

LOGGED = {
    "terminal": "精简了 %d 个过时命令返回内容",
    "file_read": "精简了 %d 个历史文件读取内容",
    "tool_output": "压缩了 %d 个已完成轮次的工具返回内容",
}
"""One line per rule and view, where it replaced anything (S0.29, S1.41)."""

_m = messages
VISIBLE = Statement(
    select(
        _m.c.seq,
        _m.c.role,
        _m.c.name,
        _m.c.status,
        _m.c.tool_call_id,
        _m.c.created_at,
        _m.c.message_id,
        _m.c.extra,
        _m.c.content_form,
        case((_m.c.seq.in_(rules.positions("replaced")), null()), else_=_m.c.content),
    )
    .where(
        _m.c.tree_id == bindparam("tree_id"),
        _m.c.branch == bindparam("branch"),
        _m.c.seq.between(bindparam("first"), bindparam("last")),
    )
    .order_by(_m.c.seq)
)


def _tokens(table: Table, *columns: Column[Any]) -> Statement:
    return Statement(
        select(table.c.seq, table.c.tokens, *columns).where(
            table.c.tree_id == bindparam("tree_id"),
            table.c.branch == bindparam("branch"),
            table.c.seq.between(bindparam("first"), bindparam("last")),
        )
    )


ESTIMATES = _tokens(message_facts)
COUNTS = _tokens(token_counts, token_counts.c.encoding)


def view(
    connection: Connection,
    session_id: str,
    policy: Policy = DEFAULT,
    *,
    at: int | None = None,
    now: Now = None,
    format: str = "openai",  # noqa: A002 - the public name
    branch: int | None = None,
) -> View:
    """Return what is sent to the model: the line up to position ``at`` (its head) by a policy at a moment.

    The same line, policy and moment give the same messages for ever; ``branch`` names a line that the session left by
    a rewind, so that its requests can be replayed too. Raises SessionNotFound, PositionOutOfRange, and
    InvalidValue for an unknown format.
    """
    known_format(format)
    pointer, policy = lines.find(connection, session_id, branch), checked(policy)
    last = lines.position(pointer, at)
    return built(connection, pointer, policy, last=last, now=given(now), format=format)


def known_format(name: str) -> str:
    """Return a format's name. Raises InvalidValue for one that does not exist."""
    if name not in FORMATS:
        raise InvalidValue(f"no format is named {name!r}; there are {', '.join(FORMATS)}")
    return name


def built(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    *,
    last: int,
    now: int,
    format: str = "openai",  # noqa: A002 - the public name
    turn_over: bool = False,
) -> View:
    """Return the view of a line up to a position; ``turn_over``: a new turn begins behind it."""
    known = records(connection, pointer, last)
    visible = shown(connection, pointer, active(known))
    with paused(last - visible.first_kept):
        judged = verdicts(connection, pointer, policy, visible, last=last, now=now, turn_over=turn_over)
        runs = _runs(connection, pointer, visible, last)
        items = _read(connection, pointer, policy, judged, runs)
        placed = _placed(items, visible, policy, turn_over)
        explain = _Explained(judged, explanations(policy), *_counts(connection, pointer, runs))
        entries = [explain.entry(each) for each in placed]
        left_out = _left_out(items, entries)
        unchanged = unchanged_tokens(connection, pointer, policy, known, visible, entries, last)
        messages = [FORMATS[format](each) for each in placed]
    stats = explain.stats(entries, left_out, raw=last)._replace(unchanged_tokens=unchanged)
    _log(pointer.session_id, stats)
    return View(messages, entries, stats, pointer.session_id, pointer.branch, last)


def _placed(items: list[Item], visible: Visible, policy: Policy, turn_over: bool) -> list[Placed]:
    """Return the messages in their places: calls and results in pairs, the summaries behind what is pinned."""
    placed = list(arrange(items, policy, turn_over=turn_over))
    placed[len(visible.pinned) : len(visible.pinned)] = [_summary(each, policy) for each in visible.summaries]
    return merged(placed) if policy.summary_role == "merge" else placed


def _runs(connection: Connection, pointer: Pointer, visible: Visible, last: int) -> list[Segment]:
    """Return the runs of positions that are visible: single pinned ones, then all from the first kept one."""
    runs: list[Segment] = []
    for position in visible.pinned:
        runs += lines.segments(connection, pointer, position, min(position, last))
    return runs + lines.segments(connection, pointer, visible.first_kept, last)


def _read(
    connection: Connection, pointer: Pointer, policy: Policy, judged: dict[int, Verdict], runs: list[Segment]
) -> list[Item]:
    """Return the visible messages, replaced where the rules say so; ``judged`` learns what is short already."""
    replaced = json.dumps([verdict.seq for verdict in judged.values() if verdict.rule in WHOLE])
    items: list[Item] = []
    for run in runs:
        calls = stored_calls(connection, pointer.tree_id, run)
        rows = VISIBLE.rows(connection, tree_id=pointer.tree_id, **run._asdict(), replaced=replaced)
        items += [_item(row, calls.get(row[0]), judged, policy) for row in rows]
    return items


def _summary(standing: Standing, policy: Policy) -> Placed:
    """Return a summary as the message that it is sent as."""
    why = f"stands for positions {standing.first} to {standing.last}, compaction {standing.compaction}"
    return Placed(None, sent(standing.body, standing.facts, policy), why, (), None, "summary")


def _counts(
    connection: Connection, pointer: Pointer, runs: list[Segment]
) -> tuple[dict[int, int], str, dict[int, int]]:
    """Return the estimates by position, the tokenizer that counted most of the messages, and its counts."""
    estimates: dict[int, int] = {}
    counts: dict[str, dict[int, int]] = {}
    for run in runs:
        values = {"tree_id": pointer.tree_id, **run._asdict()}
        estimates.update(ESTIMATES.rows(connection, **values))
        for seq, tokens, encoding in COUNTS.rows(connection, **values):
            counts.setdefault(encoding, {})[seq] = tokens
    return estimates, *max(counts.items(), key=lambda item: len(item[1]), default=(ESTIMATE, {}))


def _log(session_id: str, stats: ViewStats) -> None:
    for rule, text in LOGGED.items():
        if stats.replaced.get(rule):
            log.info(text, stats.replaced[rule], extra={"session_id": session_id, "rule": rule})


def _item(row: Row, calls: list[Any] | None, judged: dict[int, Verdict], policy: Policy) -> Item:
    message, verdict = assemble(row[1:], calls), judged.get(row[0])
    if verdict is None:
        return Item(row[0], message)
    if verdict.rule in WHOLE:
        message["content"] = placeholder(verdict, policy)
    elif verdict.rule:
        content = message.get("content")
        short = short_form(content, verdict.tool_name, verdict.kind, min_saving=policy.min_saving)
        if short is None:
            judged[verdict.seq] = verdict._replace(rule=None, why="short")
        else:
            message["content"] = short
    return Item(row[0], message, verdict.call, verdict.tool_name)


class _Explained(NamedTuple):
    """What it takes to say of each message of a view why it is as it is, and what it costs."""

    judged: dict[int, Verdict]
    reasons: dict[str, str]
    estimates: dict[int, int]
    encoding: str
    counts: dict[int, int]

    def entry(self, placed: Placed) -> Entry:
        """Return the entry of a message in its place."""
        seq, message, repair, _, _, rule = placed
        if seq is None or rule:
            return Entry(seq, message, rule or "repair", repair or "", message_tokens(message, estimate), 0)
        verdict, whole = self.judged.get(seq), self.counts.get(seq) or self.estimates[seq]
        reason = self.reasons[verdict.why] if verdict else ""
        if verdict is None or verdict.rule is None:
            return Entry(seq, message, "repair" if repair else None, repair or reason, whole, 0)
        tokens = message_tokens(message, estimate)
        return Entry(seq, message, verdict.rule, reason, tokens, whole - tokens)

    def stats(self, entries: list[Entry], left_out: tuple[int, ...], *, raw: int) -> ViewStats:
        """Return the totals of a view over a line of ``raw`` messages."""
        saved: Counter[str] = Counter()
        for entry in entries:
            if entry.tokens_saved:
                saved[str(entry.rule)] += entry.tokens_saved
        counted = all(entry.seq in self.counts for entry in entries if entry.seq)
        return ViewStats(
            messages=len(entries),
            raw_messages=raw,
            replaced=dict(Counter(entry.rule for entry in entries if entry.rule)),
            tokens=sum(entry.tokens for entry in entries),
            tokens_saved=sum(saved.values()),
            saved_by_rule=dict(saved),
            first_changed=_first_changed(entries, left_out),
            counted_by=self.encoding if counted else ESTIMATE,
            unchanged_tokens=None,
            left_out=left_out,
        )


def _left_out(items: list[Item], entries: list[Entry]) -> tuple[int, ...]:
    """Return the positions that were visible and are in no entry."""
    shown_positions = {entry.seq for entry in entries}
    return tuple(item.seq for item in items if item.seq not in shown_positions)


def _first_changed(entries: list[Entry], left_out: tuple[int, ...]) -> int | None:
    """Return the first position that is not as in the raw line: replaced, moved, left out or behind something made."""
    changed = (index for index, entry in enumerate(entries, 1) if entry.rule is not None or entry.seq != index)
    return min(filter(None, (next(changed, None), *left_out[:1])), default=None)
