"""The messages of a chat straight from the rows of a plain line.

Nearly every line of a chat is plain: each message is a text with calls in the usual shape, and the
results of an answer follow it in the order of its calls. Then nothing has to be paired, repaired or
cleaned, and a row becomes the message that is sent. Whatever is not plain is rendered by `segments`
from the same rows, and so are the entries of a plain view once they are asked for.
"""

from __future__ import annotations

from collections.abc import Container

from ..database import Row
from ..formats import CHAT_NAMES, CHAT_PART_TYPES
from ..messages import PLAIN_FORMS, TIME_KEYS, WIRE_KEY, Message, decode_rest
from .line_rows import LineRows
from .verdicts import Verdicts

IDLE_KEYS = frozenset((*TIME_KEYS, "refusal", "annotations"))
"""Keys of a message that are not sent; others without a column may be, if they have a value."""


def write_plain_messages(
    rows: LineRows, judged: Verdicts, checked: int = 0
) -> list[Message] | None:
    """Return the messages of a chat as they are sent; None if the line is not plain.

    The columns of the first rows were ``checked`` before.
    """
    calls, replaced = _write_plain_calls(rows.calls), rows.replaced
    if calls is None or not _has_plain_columns(rows.messages[checked:], replaced):
        return None
    sent: list[Message] = []
    asked: list[Message] = []
    calling = answered = 0
    for seq, role, name, _, _, _, _, _, _, content in rows.messages:
        if role == "tool":
            verdict = judged.get(seq)
            if verdict is None or answered == len(asked) or verdict.call != (calling, answered):
                return None
            if verdict.rule and seq not in replaced:
                return None
            said = replaced[seq] if verdict.rule else content or ""
            sent.append({"role": role, "tool_call_id": asked[answered]["id"], "content": said})
            answered += 1
            continue
        if answered < len(asked):
            return None
        message = {"role": role, "name": name} if name else {"role": role}
        if seq in calls and role == "assistant":
            calling, asked, answered = seq, calls[seq], 0
            message["content"], message["tool_calls"] = content, asked
        else:
            message["content"] = content or ""
        sent.append(message)
    return sent if answered == len(asked) else None


def _has_plain_columns(rows: list[Row], replaced: Container[int]) -> bool:
    """Tell whether messages are texts with a role of a chat, and have no other keys to look at."""
    roles = {row[1] for row in rows}
    forms = {row[-2] for row in rows if row[0] not in replaced}
    rests = map(decode_rest, {row[-3] for row in rows} - {None})
    return (
        roles <= CHAT_PART_TYPES.keys()
        and forms <= PLAIN_FORMS
        and all(
            key in IDLE_KEYS or (value is None and key != WIRE_KEY)
            for rest in rests
            for key, value in rest.items()
        )
    )


def _write_plain_calls(rows: list[Row]) -> dict[int, list[Message]] | None:
    """Return calls as they are sent, by the position of their message.

    None if one is not in the usual shape, or would be sent under another id or name.
    """
    ids = {row[1] for row in rows}
    if len(ids) < len(rows):
        return None
    calls: dict[int, list[Message]] = {}
    for seq, call_id, name, form, arguments, extra in rows:
        if extra is not None or form != "text" or not call_id or not name:
            return None
        function = {"name": name, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        if seq in calls:
            calls[seq].append(call)
        else:
            calls[seq] = [call]
    names = {row[2] for row in rows}
    is_accepted = CHAT_NAMES.ids.fits_all(ids) and CHAT_NAMES.tools.fits_all(names)
    return calls if is_accepted else None
