"""The messages that the rows of a Claude Code session make.

What a row says beyond its message is kept under one extra key, ``claude_code``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...messages import Message
from ...text import JsonFields
from ..blocks import ContentBlock, build_assistant_message, build_user_messages
from ..events import drop_keys, parse_iso_milliseconds
from ..shelf import KeyNumbers
from .drafts import RowGroup
from .kept import SessionRows
from .rows import ConversationRow, pick_differing_fields

SYNTHETIC_MODEL = "<synthetic>"
"""The model of answers that no model gave: Claude Code's own notices."""


def build_row_messages(
    rows: SessionRows, drafts: Iterable[RowGroup], constant: JsonFields
) -> Iterator[tuple[RowGroup, list[Message]]]:
    """Yield drafts with the messages that they make, which say nothing that all rows say.

    Each message has its id, its time, and what its rows say beyond it. Where rows make several
    messages, the first has what they say, the others only their uuids.
    """
    taken = KeyNumbers()
    for draft in drafts:
        own = [*rows.of(draft)]
        first = own[0]
        if first.role == "user":
            messages = build_user_messages(first.content, first.blocks)
        else:
            messages = [_build_ordered_answer([block for row in own for block in row.blocks])]
        extra = _collect_row_extra(own, constant)
        copies = [uuid for index in draft for uuid in rows.copies.get(index, ())]
        if copies:
            extra["copies"] = copies
        for message in messages:
            _set_id_and_time(message, own[0], taken)
            message["claude_code"] = extra | message.get("claude_code", {})
            message_id = own[0].message_id
            if message_id and message.get("id") != message_id:
                message["claude_code"]["message_id"] = message_id
            extra = {"uuids": extra["uuids"]}
        yield draft, messages


def _build_ordered_answer(blocks: list[ContentBlock]) -> Message:
    message, order = build_assistant_message(blocks)
    if order:
        message["claude_code"] = {"block_order": order}
    return message


def _set_id_and_time(message: Message, row: ConversationRow, taken: KeyNumbers) -> None:
    """Give a message its id and its time."""
    if row.role != "assistant" or row.api.get("model") == SYNTHETIC_MODEL:
        wanted = row.uuid
    else:
        wanted = row.message_id or row.uuid
    if wanted is None:
        message_id = None
    else:
        if wanted in taken:
            base = row.uuid or wanted
            name = base
            while name in taken:
                used = taken.get(base) or 0
                name, taken[base] = f"{base}#{used}", used + 1
            wanted = name
        taken[wanted] = 1
        message_id = wanted
    if message_id:
        message["id"] = message_id
    at = parse_iso_milliseconds(row.envelope.get("timestamp"))
    if at is not None:
        message["timestamp"] = at


def _collect_row_extra(rows: Sequence[ConversationRow], constant: JsonFields) -> JsonFields:
    """Return what a message's rows say beyond the API's message.

    The keys are the first row's; what a later row says otherwise is under ``later_lines``, row by
    row. What belongs to the API's message is the last that was said: its numbers grow.
    """
    first, *later = rows
    envelope = first.envelope
    extra: JsonFields = {"uuids": [row.uuid for row in rows]}
    extra |= drop_keys(envelope, *constant)
    for key, held in _merge_api_fields(rows).items():
        extra[f"message_{key}" if key in envelope else key] = held
    if later:
        extra["later_lines"] = [pick_differing_fields(envelope, row.envelope) for row in later]
    return extra


def _merge_api_fields(rows: Iterable[ConversationRow]) -> JsonFields:
    """Return what rows say of their API message, of each key the last value."""
    api: JsonFields = {}
    for row in rows:
        for key, held in row.api.items():
            if held is not None or key not in api:
                api[key] = held
    return api
