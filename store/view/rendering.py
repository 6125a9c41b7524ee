"""The messages of a line as a view sends them, before summaries and drafts are inserted.

**Stretches.** The pairing of a call and its result depends only on the messages between them. So a
line is divided into stretches: a message, or an answer with its results, however far away. A
stretch is rendered from its own messages and verdicts. Two things may still change it: the missing
results of its calls, while their turn runs, and a message that continues the last answer. From the
first such stretch on, a line is ``loose``; the part before it is final, and if a verdict changes
there, only its stretch is rendered again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import case, null, select

from ..database import Statement, json_sql, messages, tool_results
from ..formats import (
    CHAT,
    PlacedMessage,
    find_audio,
    find_reasoning,
    find_wire_values,
    remove_audio,
)
from ..history import Segment, lines
from ..messages import WIRE_KEY, assemble_message, select_opaque_fields
from .context import ViewContext
from .judging import Verdict, Verdicts
from .pairing import (
    NO_CALLS,
    LineMessage,
    LineStretch,
    load_message_calls,
    make_line_message,
    pair_messages,
    report_foreign_parts,
    select_sendable_calls,
)
from .placeholders import cut_arguments, load_result_lines, select_media, shorten_result
from .rules import NAMING_RULES, list_placeholders

_m = messages
_is_replaced = _m.c.seq.in_(json_sql.select_positions("replaced"))
VISIBLE_MESSAGES = Statement(
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
    .where(lines.match_run(_m))
    .order_by(_m.c.seq)
)

_answering_results = tool_results
ANSWERED_CALL = Statement(
    select(
        _answering_results.c.call_seq,
        _answering_results.c.call_position,
        _answering_results.c.tool_name,
    ).where(lines.match_place(_answering_results))
)


UnsentItem = tuple[Any, str | None]
"""The type of an item or the role of a message, and the only format that has such an item.

`DROPPED_BY_PAIRING` is used for the format where pairing left the message out.
"""
DROPPED_BY_PAIRING = "pairing"


class RenderedSegment(NamedTuple):
    """Rendered runs of a line: each message in its place, and the verdicts of the results.

    ``loose`` is the index of the first stretch that may still change. ``pictured`` says why media
    were replaced, by position. ``earliest_call`` is the first message that results answer.
    ``left_out`` are the positions of messages that are not sent.
    """

    placed: list[PlacedMessage]
    judged: Verdicts
    stretches: list[LineStretch]
    loose: int
    pictured: dict[int, str]
    has_pictures: bool
    """Whether the whole line or the time decides about parts: pictures, ids of audio."""
    earliest_call: int
    left_out: dict[int, UnsentItem]


def render_segment(
    context: ViewContext,
    judged: Verdicts,
    runs: list[Segment],
    format: str,  # noqa: A002 - the public name
    *,
    turn_over: bool,
) -> RenderedSegment:
    """Return the messages in runs of a line as a format sends them, paired and in order."""
    policy = context.policy
    stored, judged = _load_messages(context, judged, runs)
    tells = policy.foreign_reasoning == "text"
    items = [
        each
        for each in stored
        if "content" in each.message or _is_sendable(each, format, tells_reasoning=tells)
    ]
    left_out: dict[int, UnsentItem] = {}
    if len(items) < len(stored):
        sent = {each.seq for each in items}
        left_out = {
            each.seq: _describe_unsent_item(each) for each in stored if each.seq not in sent
        }
    has_audio = format == CHAT.name and any(find_audio(each.message) for each in items)
    if has_audio:
        items = [_drop_expired_audio(each, context.now) for each in items]
    items, pictured, has_media = select_media(items, policy, turn_over=turn_over)
    paired = pair_messages(items, policy, turn_over=turn_over)
    if "drop" in (policy.unanswered, policy.orphans):
        sent = {each.seq for each in paired.placed if each.seq is not None}
        dropped = (item for item in items if item.seq not in sent)
        left_out |= {item.seq: (item.message["role"], DROPPED_BY_PAIRING) for item in dropped}
    return RenderedSegment(
        report_foreign_parts(paired.placed),
        judged,
        paired.stretches,
        paired.loose,
        pictured,
        has_media or has_audio,
        min((item.call[0] for item in items if item.call), default=context.last),
        left_out,
    )


def _is_sendable(
    item: LineMessage,
    format: str,  # noqa: A002 - the public name
    *,
    tells_reasoning: bool,
) -> bool:
    """Tell whether a format has a place for a message without content.

    An item that has no place in a chat is sent in its own format only. Reasoning of another format
    is sent if the policy sends it as text.
    """
    message = item.message
    if not select_opaque_fields(message) or find_wire_values(message, format) is not None:
        return True
    return tells_reasoning and bool(find_reasoning(message, format))


def _describe_unsent_item(item: LineMessage) -> UnsentItem:
    """Return the type and format of a message that has no place in the view's format."""
    held = item.message.get(WIRE_KEY)
    wire = held if isinstance(held, dict) else {}
    block = wire.get("block")
    if isinstance(block, dict):
        return block.get("type"), wire.get("format")
    return item.message.get("type", item.message["role"]), None


def _drop_expired_audio(item: LineMessage, now: int) -> LineMessage:
    """Return a message without the id of audio that its provider has deleted by now (ms)."""
    audio = find_audio(item.message) or {}
    ends = audio.get("expires_at")
    if not isinstance(ends, int | float) or now < ends * 1_000:
        return item
    return item._replace(message=remove_audio(item.message))


def _load_messages(
    context: ViewContext, judged: Verdicts, runs: list[Segment]
) -> tuple[list[LineMessage], Verdicts]:
    """Return the visible messages after the rules were applied, and the final verdicts.

    A result has to be read to find that its short form would not be shorter.
    """
    policy = context.policy
    items: list[LineMessage] = []
    too_short: Verdicts = {}
    replaced = _load_replacements(context, judged)
    for stored, verdict in _load_judged_messages(context, judged, runs, replaced):
        item, message = stored, stored.message
        if verdict is None:
            if message["role"] == "tool":  # it is pinned: no rule judges it, so its call is unknown
                place = context.raw.place(item.seq)
                call_seq, position, tool_name = ANSWERED_CALL.one(context.connection, **place)
                call = None if call_seq is None else (call_seq, position)
                item = item._replace(call=call, tool_name=tool_name)
        elif verdict.rule == "arguments":
            calls = message["tool_calls"] = cut_arguments(message["tool_calls"], policy.language)
            item = item._replace(calls=select_sendable_calls(item.seq, calls) if item.calls else ())
        elif verdict.rule is not None and item.seq not in replaced:
            short = shorten_result(
                message.get("content"),
                verdict.tool_name,
                verdict.kind,
                failed=verdict.failed,
                min_saving=policy.min_saving,
                language=policy.language,
            )
            if short is None:
                too_short[item.seq] = verdict._replace(rule=None, why="short")
            else:
                message["content"] = short
        items.append(item)
    return items, judged | too_short


def _load_replacements(context: ViewContext, judged: Verdicts) -> dict[int, str]:
    """Return the texts of the results that are replaced as a whole, by position."""
    texts = list_placeholders(context.policy)
    verdicts = [verdict for verdict in judged.values() if verdict.rule]
    replaced = {verdict.seq: texts[verdict.rule] for verdict in verdicts if verdict.rule in texts}
    tree_id = context.pointer.tree_id
    cleared = [verdict.answer(tree_id) for verdict in verdicts if verdict.rule in NAMING_RULES]
    if cleared:
        lines = load_result_lines(context, cleared)
        replaced |= {seq: each.line for seq, each in lines.items()}
    return replaced


def _load_judged_messages(
    context: ViewContext,
    judged: Verdicts,
    runs: list[Segment],
    replaced: dict[int, str],
) -> Iterator[tuple[LineMessage, Verdict | None]]:
    """Yield the messages of runs with their verdicts; content that is replaced is not read."""
    replaced_places = sorted(replaced)
    for run in runs:
        values = run.within(context.pointer.tree_id)
        calls_by_seq = load_message_calls(context.connection, values)
        unread = json.dumps(run.of(replaced_places))
        for row in VISIBLE_MESSAGES.rows(context.connection, **values, replaced=unread):
            seq, columns = row[0], row[1:]
            verdict = judged.get(seq)
            stored = calls_by_seq.get(seq, NO_CALLS)
            message = assemble_message(columns, stored.stored)
            if seq in replaced:
                message["content"] = replaced[seq]
            call, tool_name = (verdict.call, verdict.tool_name) if verdict else (None, None)
            calls = stored.calls if message["role"] == "assistant" else ()
            sound = row[-1] if row[-2] == "text" else None
            yield make_line_message((seq, message, call, tool_name, calls, sound)), verdict
