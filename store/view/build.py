"""The view: what is sent to the model, computed from a line by the rules of a policy.

First the rules judge the narrow tables, then one scan of each run reads the messages, leaving the
contents that will be replaced unread; last, calls and results are paired and everything is written
for the API. No stored byte changes.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, case, null, select

from ..clock import Now, given
from ..database import Statement, json_sql, messages, paused, tool_results
from ..formats import CHAT, Placed, format_named, kept, reasoning_of, with_reasoning
from ..history import Segment, left, lines, stored_calls
from ..messages import Message, assemble, opaque_fields
from ..policy import DEFAULT, Policy, checked
from ..records import Entry, View, ViewStats
from .entries import counted, entries_of, stats_of
from .interrupted import with_drafts
from .judging import Verdict, Verdicts, verdicts
from .look import Look, look_at
from .named_results import line_of
from .old_calls import cut_calls
from .pictures import shown
from .prefix import unchanged_tokens
from .read_files import files_of, log_reads
from .repair import Item, arrange, merged, reported
from .rules import NAMING, UNREAD, WHOLE, log_lines, placeholder
from .short_results import short_form
from .standing import Range, Standing

log = logging.getLogger(__name__)

_m = messages
_is_replaced = _m.c.seq.in_(json_sql.positions("replaced"))
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
        case((_is_replaced, null()), else_=_m.c.content),
    )
    .where(lines.run_of(_m))
    .order_by(_m.c.seq)
)

_r = tool_results
CALL_OF = Statement(
    select(
        _r.c.call_seq,
        _r.c.call_position,
        _r.c.tool_name,
    ).where(lines.at(_r))
)


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
    """Return what is sent to the model: a line up to position ``at`` by a policy at a moment.

    Without ``at`` it is the whole line, without ``now`` the moment is the present; coding agents
    had better give ``Policy.named("agent")``. The same line, policy and moment give the same
    messages for ever, as far as no compaction is recorded later at that very position; ``branch``
    names a line that the session can go back to, so that its requests can be replayed too. Raises
    SessionNotFound, PositionOutOfRange, and InvalidValue for a branch or an unknown format.
    """
    format_named(format)
    pointer = left.find(connection, session_id, branch)
    last = lines.position(pointer, at)
    look = look_at(connection, pointer, checked(policy), last=last, now=given(now))
    return composed(look, format).written(format)


class Composed(NamedTuple):
    """A view that is not written for a provider yet."""

    placed: list[Placed]
    entries: list[Entry]
    stats: ViewStats
    session_id: str
    branch: int
    at: int

    def written(self, format: str) -> View:  # noqa: A002 - the public name
        """Return the view in a format."""
        with paused(len(self.placed)):
            messages, system = format_named(format).request(self.placed)
        return View(
            messages,
            self.entries,
            self.stats,
            self.session_id,
            self.branch,
            self.at,
            system,
        )


def composed(look: Look, format: str = CHAT.name) -> Composed:  # noqa: A002 - the public name
    """Return the view of what a look sees, before it is written in a format."""
    with paused(look.last - look.visible.first_kept):
        view = _composed(look, format)
    _log(view.session_id, view.stats)
    return view


def _composed(look: Look, format: str) -> Composed:  # noqa: A002 - the public name
    runs = _runs(look)
    read, judged = _read(look, verdicts(look), runs)
    tells = look.policy.foreign_reasoning == "text"
    said = [each for each in read if _is_shown(each.message, format, tells=tells)]
    items, named = shown(said, look.policy)
    placed = _placed(look, items)
    tokens = counted(look, runs)
    files = files_of(look, judged)
    entries = entries_of(look, placed, judged, tokens, files, named)
    unchanged = unchanged_tokens(look, placed, entries)
    left_out = _left_out(read, entries)
    stats = stats_of(look, entries, tokens, left_out=left_out, unchanged_tokens=unchanged)
    pointer = look.pointer
    log_reads(pointer.session_id, judged, files)
    if tells:
        placed = [*with_reasoning(placed, format)]
    return Composed(placed, entries, stats, pointer.session_id, pointer.branch, look.last)


def _is_shown(
    message: Message,
    format: str,  # noqa: A002 - the public name
    *,
    tells: bool,
) -> bool:
    """Tell a message that says something in a format: what no chat shows, in its own alone.

    Reasoning of another's says something where it is told as text.
    """
    if "content" in message or not opaque_fields(message):
        return True
    return kept(message, format) is not None or (tells and bool(reasoning_of(message, format)))


def _runs(look: Look) -> list[Segment]:
    """Return the runs that are visible: the pinned positions, then what is kept."""
    kept = look.shown(look.visible.first_kept, look.last)
    return [*_pinned(look), *kept]


def _pinned(look: Look) -> Iterator[Segment]:
    for position in look.visible.pinned:
        yield from look.runs(position, min(position, look.last))


def _read(
    look: Look,
    judged: Verdicts,
    runs: list[Segment],
) -> tuple[list[Item], Verdicts]:
    """Return the visible messages as the rules leave them, and the verdicts in the end.

    Only when a result is read is it known that its short form would not be shorter.
    """
    items: list[Item] = []
    short: Verdicts = {}
    for seq, message in _stored(look, runs, _replaced(judged)):
        verdict = judged.get(seq)
        if verdict is None:
            item = Item(seq, message)
            items.append(_answering(look, item) if message["role"] == "tool" else item)
            continue
        if verdict.rule and not _replace(look, message, verdict):
            short[seq] = verdict._replace(rule=None, why="short")
        items.append(Item(seq, message, verdict.call, verdict.tool_name))
    return items, judged | short


def _replaced(judged: Verdicts) -> str:
    """Return the positions of the results that are replaced as a whole, as JSON."""
    whole = (verdict.seq for verdict in judged.values() if verdict.rule in UNREAD)
    return json.dumps([*whole])


def _stored(
    look: Look,
    runs: list[Segment],
    replaced: str,
) -> Iterator[tuple[int, Message]]:
    """Yield the messages of runs by position, without the contents that are ``replaced``."""
    connection, tree_id = look.connection, look.pointer.tree_id
    for run in runs:
        values = run.within(tree_id)
        calls = stored_calls(connection, values)
        for row in VISIBLE.rows(connection, **values, replaced=replaced):
            seq = row[0]
            yield seq, assemble(row[1:], calls.get(seq))


def _replace(look: Look, message: Message, verdict: Verdict) -> bool:
    """Put what stands for a result into its place; tell whether anything shorter does."""
    if verdict.rule == "arguments":
        message["tool_calls"] = cut_calls(message["tool_calls"])
        return True
    content = _content(look, message, verdict)
    if content is not None:
        message["content"] = content
    return content is not None


def _answering(look: Look, item: Item) -> Item:
    """Return a result with the call that it answers, as it was linked when it was stored.

    No rule judges one that is pinned, beside its call.
    """
    place = look.raw.place(item.seq)
    call_seq, position, tool_name = CALL_OF.one(look.connection, **place)
    call = None if call_seq is None else (call_seq, position)
    return item._replace(call=call, tool_name=tool_name)


def _content(look: Look, message: Message, verdict: Verdict) -> str | None:
    """Return what stands for a result that a rule replaces; None where nothing shorter does."""
    if verdict.rule in WHOLE:
        return placeholder(str(verdict.rule), look.policy)
    if verdict.rule in NAMING:
        return line_of(look, verdict.answer(look.pointer.tree_id)).line
    return short_form(
        message.get("content"),
        verdict.tool_name,
        verdict.kind,
        failed=verdict.failed,
        min_saving=look.policy.min_saving,
    )


def _placed(look: Look, items: list[Item]) -> list[Placed]:
    """Return the messages in order: results behind their calls, summaries behind what is pinned."""
    arranged = arrange(items, look.policy, turn_over=look.turn_over)
    placed = [
        each if isinstance(each.message.get("content"), str) else reported(each)
        for each in arranged
    ]
    if look.visible.holes:
        placed = [*_filled(placed, look.visible.holes, look.policy)]
    behind = _behind(placed, look.visible.pinned)
    placed[behind:behind] = _summaries(look)
    if look.policy.show_drafts:
        placed = with_drafts(look, placed)
    if look.policy.summary_role == "merge":
        return merged(placed)
    return placed


def _filled(
    placed: list[Placed],
    holes: tuple[Range, ...],
    policy: Policy,
) -> Iterator[Placed]:
    """Yield messages with what stands for ranges in their places, never within a group."""
    waiting = deque(holes)
    for index, each in enumerate(placed):
        if each.call_id is None:
            seq = (placed[index + 1] if each.is_made_up_call else each).seq or 0
            while waiting and waiting[0].last < seq:
                yield from _in_place_of(waiting.popleft(), policy)
        yield each
    for hole in waiting:
        yield from _in_place_of(hole, policy)


def _in_place_of(hole: Range, policy: Policy) -> Iterator[Placed]:
    if hole.summary:
        yield _summary(hole.summary, policy)


def _summaries(look: Look) -> list[Placed]:
    return [_summary(each, look.policy) for each in look.visible.summaries]


def _behind(placed: list[Placed], pinned: tuple[int, ...]) -> int:
    """Return the place behind what is pinned, and behind the results of pinned calls."""
    if not pinned:
        return 0
    places = [index for index, each in enumerate(placed) if each.seq in pinned]
    behind = max(places, default=-1) + 1
    while behind and behind < len(placed) and placed[behind].call_id is not None:
        behind += 1
    return behind


def _summary(standing: Standing, policy: Policy) -> Placed:
    """Return a summary as the message that it is sent as."""
    message = standing.message(policy)
    return Placed(None, message, standing.why, (), None, "summary", standing.compaction)


def _left_out(
    items: list[Item],
    entries: list[Entry],
) -> tuple[int, ...]:
    """Return the positions that were visible and are in no entry."""
    shown = {entry.seq for entry in entries}
    return tuple(item.seq for item in items if item.seq not in shown)


def _log(session_id: str, stats: ViewStats) -> None:
    for rule, text in log_lines().items():
        if times := stats.replaced.get(rule):
            log.info(text, times, extra={"session_id": session_id, "rule": rule})
