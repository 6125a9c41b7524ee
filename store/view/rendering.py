"""What a line's messages become before anything stands in their place or before them.

**Stretches.** Calls and results are paired by what stands between them alone. So a line falls into
stretches: a message, or an answer with its results, however far these are. What a stretch becomes
follows from its own messages and verdicts. Two things may still change it: results of calls that
have none yet, while their turn runs, and a message that goes on with the last answer. From the
first such stretch on a line is ``loose``; all before it stays, and where a verdict changes, only
that stretch is made anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import case, null, select

from ..database import Statement, json_sql, messages, tool_results
from ..formats import CHAT, Placed, audio_of, kept, reasoning_of, without_audio
from ..history import Segment, lines
from ..messages import WIRE, Message, assemble, opaque_fields
from ..ready import Language
from .context import ViewContext
from .judging import Verdict, Verdicts
from .named_results import lines_of
from .old_calls import cut_calls
from .pictures import shown
from .repair import Item, Stretch, arrange, new_item, reported
from .rules import NAMING, placeholders
from .short_results import short_form
from .spoken import SILENT, api_calls, spoken_in

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
    .where(lines.in_run(_m))
    .order_by(_m.c.seq)
)

_r = tool_results
CALL_OF = Statement(
    select(
        _r.c.call_seq,
        _r.c.call_position,
        _r.c.tool_name,
    ).where(lines.at_place(_r))
)


Unsent = tuple[Any, str | None]
"""The type of an item or the role of a message, and the format that alone has such an item.

`DROPPED` stands for the format where pairing left the message out.
"""
DROPPED = "pairing"


class Rendered(NamedTuple):
    """What runs of a line became: each message in its place, and what is said of the results.

    ``loose`` is the place of the first stretch that may become something else. ``pictured`` says
    why pictures gave way, by position. ``earliest_call`` is the first message that results answer.
    ``left_out`` is what nothing was made of, by position.
    """

    placed: list[Placed]
    judged: Verdicts
    stretches: list[Stretch]
    loose: int
    pictured: dict[int, str]
    has_pictures: bool
    """Whether what is sent follows from the whole line or the moment: pictures, ids of audio."""
    earliest_call: int
    left_out: dict[int, Unsent]


def rendered(
    context: ViewContext,
    judged: Verdicts,
    runs: list[Segment],
    format: str,  # noqa: A002 - the public name
    *,
    turn_over: bool,
) -> Rendered:
    """Return what the messages in runs of a line become in a format, paired and in order."""
    read, judged = _read(context, judged, runs)
    tells = context.policy.foreign_reasoning == "text"
    said = [
        each
        for each in read
        if "content" in each.message or _is_shown(each.message, format, tells=tells)
    ]
    left_out: dict[int, Unsent] = {}
    if len(said) < len(read):
        there = {each.seq for each in said}
        left_out = {each.seq: _left_out(each) for each in read if each.seq not in there}
    has_audio = format == CHAT.name and any(audio_of(each.message) for each in said)
    if has_audio:
        said = [_with_lasting_audio(each, context.now) for each in said]
    items, pictured, has_pictures = shown(said, context.policy, turn_over=turn_over)
    arranged = arrange(items, context.policy, turn_over=turn_over)
    answered = (item.call[0] for item in items if item.call)
    if "drop" in (context.policy.unanswered, context.policy.orphans):
        left_out |= _dropped(items, arranged.placed)
    return Rendered(
        reported(arranged.placed),
        judged,
        arranged.stretches,
        arranged.loose,
        pictured,
        has_pictures or has_audio,
        min(answered, default=context.last),
        left_out,
    )


def _with_lasting_audio(item: Item, now: int) -> Item:
    """Return a message without the id of audio that its provider has deleted by now (ms)."""
    audio = audio_of(item.message) or {}
    ends = audio.get("expires_at")
    if not isinstance(ends, int | float) or now < ends * 1_000:
        return item
    return item._replace(message=without_audio(item.message))


def _left_out(item: Item) -> Unsent:
    """Return what a message is that a format has no place for."""
    held = item.message.get(WIRE)
    wire = held if isinstance(held, dict) else {}
    block = wire.get("block")
    if isinstance(block, dict):
        return block.get("type"), wire.get("format")
    return item.message.get("type", item.message["role"]), None


def _dropped(items: list[Item], placed: list[Placed]) -> dict[int, Unsent]:
    """Return what messages are that pairing leaves out."""
    there = {each.seq for each in placed}
    return {item.seq: (item.message["role"], DROPPED) for item in items if item.seq not in there}


def _is_shown(
    message: Message,
    format: str,  # noqa: A002 - the public name
    *,
    tells: bool,
) -> bool:
    """Tell a message without content that says something in a format.

    What no chat shows does in its own alone, and reasoning of another's where it is told as text.
    """
    if not opaque_fields(message):
        return True
    return kept(message, format) is not None or (tells and bool(reasoning_of(message, format)))


def _read(
    context: ViewContext,
    judged: Verdicts,
    runs: list[Segment],
) -> tuple[list[Item], Verdicts]:
    """Return the visible messages as the rules leave them, and the verdicts in the end.

    Only when a result is read is it known that its short form would not be shorter.
    """
    items: list[Item] = []
    short: Verdicts = {}
    whole = _in_place_of_all(context, judged)
    for item, verdict in _stored(context, judged, runs, whole):
        if verdict is None:
            items.append(_answering(context, item) if item.message["role"] == "tool" else item)
        elif verdict.rule is None or item.seq in whole:
            items.append(item)
        elif verdict.rule == "arguments":
            items.append(_with_cut_calls(item, context.policy.language))
        else:
            if not _shorten(context, item.message, verdict):
                short[item.seq] = verdict._replace(rule=None, why="short")
            items.append(item)
    return items, judged | short


def _in_place_of_all(context: ViewContext, judged: Verdicts) -> dict[int, str]:
    """Return what stands for the results that are replaced as a whole, by position."""
    texts = placeholders(context.policy)
    found = [verdict for verdict in judged.values() if verdict.rule]
    whole = {verdict.seq: texts[verdict.rule] for verdict in found if verdict.rule in texts}
    tree_id = context.pointer.tree_id
    cleared = [verdict.answer(tree_id) for verdict in found if verdict.rule in NAMING]
    named = lines_of(context, cleared) if cleared else {}
    return whole | {seq: each.line for seq, each in named.items()}


Stored = Iterator[tuple[Item, Verdict | None]]
"""Messages as they are stored, and what the rules say of them."""


def _stored(
    context: ViewContext,
    judged: Verdicts,
    runs: list[Segment],
    whole: dict[int, str],
) -> Stored:
    """Yield the messages of runs; what is replaced as a ``whole`` is not read."""
    replaced = sorted(whole)
    for run in runs:
        values = run.within(context.pointer.tree_id)
        spoken = spoken_in(context.connection, values)
        unread = json.dumps(run.of(replaced))
        for row in VISIBLE.rows(context.connection, **values, replaced=unread):
            seq, columns = row[0], row[1:]
            verdict = judged.get(seq)
            own = spoken.get(seq, SILENT)
            message = assemble(columns, own.given)
            if seq in whole:
                message["content"] = whole[seq]
            call, tool_name = (verdict.call, verdict.tool_name) if verdict else (None, None)
            calls = own.calls if message["role"] == "assistant" else ()
            sound = row[-1] if row[-2] == "text" else None
            yield new_item((seq, message, call, tool_name, calls, sound)), verdict


def _with_cut_calls(item: Item, language: Language) -> Item:
    """Return a message whose calls are cut."""
    given = item.message["tool_calls"] = cut_calls(item.message["tool_calls"], language)
    return item._replace(calls=api_calls(item.seq, given) if item.calls else ())


def _answering(context: ViewContext, item: Item) -> Item:
    """Return a result with the call that it answers, as it was linked when it was stored.

    No rule judges one that is pinned, beside its call.
    """
    place = context.raw.place(item.seq)
    call_seq, position, tool_name = CALL_OF.one(context.connection, **place)
    call = None if call_seq is None else (call_seq, position)
    return item._replace(call=call, tool_name=tool_name)


def _shorten(context: ViewContext, message: Message, verdict: Verdict) -> bool:
    """Put what is shorter into the place of a content; tell whether anything is."""
    content = short_form(
        message.get("content"),
        verdict.tool_name,
        verdict.kind,
        failed=verdict.failed,
        min_saving=context.policy.min_saving,
        language=context.policy.language,
    )
    if content is not None:
        message["content"] = content
    return content is not None
