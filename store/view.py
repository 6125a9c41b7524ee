"""The view: what is sent to the model, computed from a line by the rules of a policy; building it changes no byte.

First the rules judge the narrow tables, then one scan of each run reads the messages, leaving the contents that will
be replaced unread; last, calls and results are paired and everything is written for the API.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, case, null, select

from . import lines, rules
from .clock import Now, given
from .errors import InvalidValue
from .formats import FORMATS
from .history import stored_calls
from .lines import Pointer
from .messages import assemble, join_call
from .policy import DEFAULT, Policy
from .records import Entry, View, ViewStats
from .repair import Item, Placed, arrange
from .rules import NEVER, Verdict
from .schema import messages, token_counts
from .statements import Row, Statement
from .tokens import ESTIMATE, FRAMING_TOKENS, estimate, estimate_size, message_tokens

log = logging.getLogger(__name__)

LOGGED = {"terminal": "精简了 %d 个过时命令返回内容", "file_read": "精简了 %d 个历史文件读取内容"}
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
COUNTS = Statement(
    select(token_counts.c.encoding, token_counts.c.seq, token_counts.c.tokens).where(
        token_counts.c.tree_id == bindparam("tree_id"),
        token_counts.c.branch == bindparam("branch"),
        token_counts.c.seq.between(bindparam("first"), bindparam("last")),
    )
)


def view(
    connection: Connection,
    session_id: str,
    policy: Policy = DEFAULT,
    *,
    at: int | None = None,
    now: Now = None,
    format: str = "openai",  # noqa: A002 - the public name
) -> View:
    """Return what is sent to the model: the line up to position ``at`` (its head) by a policy at a moment.

    The same line, policy and moment give the same messages for ever. Raises SessionNotFound, PositionOutOfRange, and
    InvalidValue for an unknown format.
    """
    if format not in FORMATS:
        raise InvalidValue(f"no format is named {format!r}; there are {', '.join(FORMATS)}")
    pointer = lines.find(connection, session_id)
    last = lines.position(pointer, at)
    judged = _judge(connection, pointer, policy, last, given(now))
    items = _read(connection, pointer, policy, judged, last)
    placed = list(arrange(items, policy))
    explain = _Explained(policy, judged, *_counts(connection, pointer, last))
    entries = [explain.entry(each) for each in placed]
    stats = explain.stats(entries, raw=last)
    for rule, text in LOGGED.items():
        if stats.replaced.get(rule):
            log.info(text, stats.replaced[rule], extra={"session_id": session_id, "rule": rule})
    return View([FORMATS[format](each) for each in placed], entries, stats, session_id, last)


def _judge(connection: Connection, pointer: Pointer, policy: Policy, last: int, now: int) -> dict[int, Verdict]:
    protected_from = _turn_start(connection, pointer, last) if policy.protect_current_turn else NEVER
    return rules.verdicts(connection, pointer, policy, start=1, last=last, protected_from=protected_from, now=now)


def _turn_start(connection: Connection, pointer: Pointer, last: int) -> int:
    """Return the position of the latest user message (1 where there is none: all is one turn)."""
    for branch, first, end in reversed(lines.segments(connection, pointer, 1, last)):
        row = rules.LAST_USER.row(connection, tree_id=pointer.tree_id, branch=branch, first=first, last=end)
        if row:
            return int(row[0])
    return 1


def _read(
    connection: Connection, pointer: Pointer, policy: Policy, judged: dict[int, Verdict], last: int
) -> list[Item]:
    """Return the line's messages, replaced where the rules say so."""
    replaced = json.dumps([verdict.seq for verdict in judged.values() if verdict.rule])
    items: list[Item] = []
    for segment in lines.segments(connection, pointer, 1, last):
        branch, first, end = segment
        run = {"tree_id": pointer.tree_id, "branch": branch, "first": first, "last": end}
        calls = stored_calls(connection, pointer.tree_id, segment)
        rows = VISIBLE.rows(connection, **run, replaced=replaced)
        items += [_item(row, calls.get(row[0]), judged.get(row[0]), policy) for row in rows]
    return items


def _counts(connection: Connection, pointer: Pointer, last: int) -> tuple[str, dict[int, int]]:
    """Return the tokenizer that counted most of the line, and its counts by position."""
    counts: dict[str, dict[int, int]] = {}
    for branch, first, end in lines.segments(connection, pointer, 1, last):
        for encoding, seq, tokens in COUNTS.rows(
            connection, tree_id=pointer.tree_id, branch=branch, first=first, last=end
        ):
            counts.setdefault(encoding, {})[seq] = tokens
    return max(counts.items(), key=lambda item: len(item[1]), default=(ESTIMATE, {}))


def _item(row: Row, calls: list[Row] | None, verdict: Verdict | None, policy: Policy) -> Item:
    seq, *columns = row
    joined = [join_call(*call) for call in calls] if calls else None
    if verdict is None:
        return Item(seq, assemble(columns, joined))
    if verdict.rule:
        columns[-2:] = (
            "text",
            policy.terminal_placeholder if verdict.rule == "terminal" else policy.file_read_placeholder,
        )
    return Item(seq, assemble(columns, joined), verdict.call, verdict.tool_name)


class _Explained(NamedTuple):
    """What it takes to say of each message of a view why it is as it is, and what it costs."""

    policy: Policy
    judged: dict[int, Verdict]
    encoding: str
    counts: dict[int, int]

    def entry(self, placed: Placed) -> Entry:
        """Return the entry of a message in its place."""
        verdict = self.judged.get(placed.seq or 0)
        tokens = self._tokens(placed, verdict)
        if verdict is None or verdict.rule is None:
            rule = "repair" if placed.repair else None
            why = placed.repair or (rules.reason(verdict, self.policy) if verdict else "")
            return Entry(placed.seq, placed.message, rule, why, tokens, 0)
        before = self.counts.get(verdict.seq) or FRAMING_TOKENS + estimate_size(verdict.length, verdict.size)
        reason = rules.reason(verdict, self.policy)
        return Entry(placed.seq, placed.message, verdict.rule, reason, tokens, before - tokens)

    def stats(self, entries: list[Entry], *, raw: int) -> ViewStats:
        """Return the totals of a view over a line of ``raw`` messages."""
        replaced = Counter(entry.rule for entry in entries if entry.rule)
        saved: Counter[str] = Counter()
        for entry in entries:
            if entry.tokens_saved:
                saved[str(entry.rule)] += entry.tokens_saved
        counted = all(entry.seq in self.counts for entry in entries)
        return ViewStats(
            messages=len(entries),
            raw_messages=raw,
            replaced=dict(replaced),
            tokens=sum(entry.tokens for entry in entries),
            tokens_saved=sum(saved.values()),
            saved_by_rule=dict(saved),
            first_changed=_first_changed(entries),
            counted_by=self.encoding if counted else ESTIMATE,
        )

    def _tokens(self, placed: Placed, verdict: Verdict | None) -> int:
        if placed.seq in self.counts and (verdict is None or verdict.rule is None):
            return self.counts[placed.seq]
        return message_tokens(placed.message, estimate)


def _first_changed(entries: list[Entry]) -> int | None:
    """Return the first position that is not as in the raw line: replaced, moved, or behind something made up."""
    for index, entry in enumerate(entries, 1):
        if entry.rule is not None or entry.seq != index:
            return index
    return None
