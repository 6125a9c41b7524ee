"""The messages that the rows of a Claude Code session make.

What a row says beyond its message is kept under one extra key, ``claude_code``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...messages import Message
from ...text import Fields
from ..blocks import Block, assistant_message, user_messages
from ..events import iso_milliseconds, without
from ..shelf import Numbers
from .drafts import Draft
from .kept import Rows
from .rows import Row, differences

SYNTHETIC = "<synthetic>"
"""The model of answers that no model gave: Claude Code's own notices."""


def messages_of(
    rows: Rows, drafts: Iterable[Draft], constant: Fields
) -> Iterator[tuple[Draft, list[Message]]]:
    """Yield drafts with the messages that they make, which say nothing that all rows say.

    Each message has its id, its time, and what its rows say beyond it. Where rows make several
    messages, the first has what they say, the others only their uuids.
    """
    taken = Numbers()
    for draft in drafts:
        own = [*rows.of(draft)]
        first = own[0]
        if first.role == "user":
            messages = user_messages(first.content, first.blocks)
        else:
            messages = [_answer([block for row in own for block in row.blocks])]
        extra = _extra(own, constant)
        copies = [uuid for index in draft for uuid in rows.copies.get(index, ())]
        if copies:
            extra["copies"] = copies
        for message in messages:
            _identify(message, own[0], taken)
            message["claude_code"] = extra | message.get("claude_code", {})
            message_id = own[0].message_id
            if message_id and message.get("id") != message_id:
                message["claude_code"]["message_id"] = message_id
            extra = {"uuids": extra["uuids"]}
        yield draft, messages


def _answer(blocks: list[Block]) -> Message:
    message, order = assistant_message(blocks)
    if order:
        message["claude_code"] = {"block_order": order}
    return message


def _identify(message: Message, row: Row, taken: Numbers) -> None:
    """Give a message its id and its time."""
    if row.role != "assistant" or row.api.get("model") == SYNTHETIC:
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
    at = iso_milliseconds(row.envelope.get("timestamp"))
    if at is not None:
        message["timestamp"] = at


def _extra(rows: Sequence[Row], constant: Fields) -> Fields:
    """Return what a message's rows say beyond the API's message.

    The keys are the first row's; what a later row says otherwise is under ``later_lines``, row by
    row. What belongs to the API's message is the last that was said: its numbers grow.
    """
    first, *later = rows
    envelope = first.envelope
    extra: Fields = {"uuids": [row.uuid for row in rows]}
    extra |= without(envelope, *constant)
    for key, held in _last_said(rows).items():
        extra[f"message_{key}" if key in envelope else key] = held
    if later:
        extra["later_lines"] = [differences(envelope, row.envelope) for row in later]
    return extra


def _last_said(rows: Iterable[Row]) -> Fields:
    """Return what rows say of their API message, of each key the last value."""
    api: Fields = {}
    for row in rows:
        for key, held in row.api.items():
            if held is not None or key not in api:
                api[key] = held
    return api
