"""Rendering of stored rows as messages of a chat or of their own format, without any repair.

Nearly every line of a chat is plain: each message is a text with calls in the usual shape, and the
results of an answer follow it in the order of its calls. Then nothing has to be paired, repaired or
cleaned, and a row becomes the message that is sent. Whatever is not plain is rendered by `segments`
from the same rows, and so are the entries of a plain view once they are asked for.

A line of Responses is plain if all its rows are items of it: messages, calls of functions and their
results. Each is restored by the template of its shape, and is sent but for what no request has.

A line of Anthropic or Gemini is plain if all its rows came in that format and results follow their
calls. What is sent of a row is built by a template that was made from the result of the format's
own code for such a row; that code writes the rows that have none, and joins all to turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence

from ..database import Row
from ..formats import (
    CHAT,
    CHAT_NAMES,
    CHAT_PART_TYPES,
    CODECS,
    RESPONSES,
    RESPONSES_NAMES,
    AcceptedNames,
    Format,
    PlacedMessage,
    WrittenRequest,
    decode_message,
    get_format,
    make_api_call,
    place_row,
    restore_row,
    shape_row,
    write_plain_item,
    write_row_parts,
)
from ..messages import (
    EMPTY_CALL_TEXT,
    PLAIN_FORMS,
    TIME_KEYS,
    WIRE_KEY,
    Media,
    Message,
    assemble_message,
    decode_rest,
    join_call,
    replace_media,
)
from ..phrases import Language
from .line_rows import LineRows
from .verdicts import Verdicts

IDLE_KEYS = frozenset((*TIME_KEYS, "refusal", "annotations"))
"""Keys of a message that are not sent; others without a column may be, if they have a value."""

_OWN_REST = {
    row.name: re.compile(
        r'(?:\[\[(?:"\w*",)*"\w*"\],)?\{"' + WIRE_KEY + r'":\{"format":"' + row.name + '"'
    )
    for row in CODECS
}
"""The beginning of the rest of a row that came in a format, after the order of its keys."""
USUAL_CALL_RESTS = frozenset((None, EMPTY_CALL_TEXT))
"""What is kept beside calls of the usual shape, with arguments of any kind."""
WritePlainRequest = Callable[[list[PlacedMessage]], WrittenRequest]
"""Returns the request of a plain line with summaries in front of it."""


def write_plain_line(
    rows: LineRows,
    judged: Verdicts,
    format: str,  # noqa: A002 - the public name
    language: Language,
    checked: int = 0,
) -> WritePlainRequest | None:
    """Return what writes the request of a line in a format; None if the line is not plain.

    The columns of the first rows were ``checked`` before.
    """
    target = get_format(format)
    if target not in (CHAT, RESPONSES):
        placed = place_plain_rows(rows, judged, target)
        if placed is None:
            return None
        return lambda summaries: target.request([*summaries, *placed], language)
    sent = (
        write_plain_messages(rows, judged, checked)
        if target is CHAT
        else write_plain_items(rows, judged)
    )
    if sent is None:
        return None
    return lambda summaries: WrittenRequest([*target.write(summaries), *sent])


def write_plain_messages(
    rows: LineRows, judged: Verdicts, checked: int = 0
) -> list[Message] | None:
    """Return the messages of a chat as they are sent; None if the line is not plain.

    The columns of the first rows were ``checked`` before.
    """
    calls, replaced = _write_plain_calls(rows.calls, CHAT_NAMES), rows.replaced
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


def _write_plain_calls(rows: list[Row], accepted: AcceptedNames) -> dict[int, list[Message]] | None:
    """Return calls as they are sent to a chat, by the position of their message.

    None if one is not in the usual shape, or would be sent under another id or name.
    """
    if not _accepts_calls(rows, accepted):
        return None
    calls: dict[int, list[Message]] = {}
    for seq, call_id, name, form, arguments, extra in rows:
        if extra is not None or form != "text":
            return None
        function = {"name": name, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        if seq in calls:
            calls[seq].append(call)
        else:
            calls[seq] = [call]
    return calls


def _accepts_calls(rows: list[Row], accepted: AcceptedNames) -> bool:
    """Tell whether calls are sent under the ids and names that they have."""
    ids = {row[1] for row in rows}
    names = {row[2] for row in rows}
    if len(ids) < len(rows) or not (all(ids) and all(names)):
        return False
    return accepted.ids.fits_all(ids) and accepted.tools.fits_all(names)


class _OpenCalls:
    """The calls that an answer has made so far, and how many of them have their results."""

    def __init__(self) -> None:
        self._asked: list[Row] = []
        self._answered = 0

    @property
    def are_answered(self) -> bool:
        """Whether no result is missing."""
        return self._answered == len(self._asked)

    def ask(self, role: str, calls: Sequence[Row]) -> bool:
        """Take the calls of a message; tell whether it may come while others wait for results."""
        if not self.are_answered and (self._answered or role != "assistant"):
            return False
        self._asked = [*self._asked[self._answered :], *calls]
        self._answered = 0
        return True

    def answer(self, place: tuple[int, int] | None, call_id: str) -> bool:
        """Take the result of a call; tell whether it is that of the next one."""
        if self.are_answered:
            return False
        seq, asked_id, *_ = self._asked[self._answered]
        self._answered += 1
        return place == (seq, 0) and call_id == asked_id


def place_plain_rows(
    rows: LineRows, judged: Verdicts, target: Format
) -> list[PlacedMessage] | None:
    """Return the messages of a line that came in a format, each in its place in a request of it.

    None if the line is not plain.
    """
    rests = {row[-3] or "" for row in rows.messages}
    calls = _group_own_calls(rows.calls, target.names)
    if calls is None or not all(map(_OWN_REST[target.name].match, rests)):
        return None
    renamed = _find_renamed_results(rows, judged, calls)
    if renamed is None:
        return None
    placed: list[PlacedMessage] = []
    for row in rows.messages:
        seq = row[0]
        each = _place_own_row(
            row,
            calls.get(seq, ()),
            rows.replaced.get(seq),
            target,
            is_usual=seq not in renamed,
        )
        if each is None:
            return None
        placed.append(each)
    return placed


def _find_renamed_results(
    rows: LineRows, judged: Verdicts, calls: dict[int, list[Row]]
) -> set[int] | None:
    """Return the results that name another tool than their calls do.

    None if the results of an answer do not follow it in the order of its calls.
    """
    renamed: set[int] = set()
    asked: list[Row] = []
    calling = answered = 0
    for seq, role, name, _, call_id, *_ in rows.messages:
        if role == "tool":
            verdict = judged.get(seq)
            if verdict is None or answered == len(asked) or verdict.call != (calling, answered):
                return None
            call = asked[answered]
            if call_id != call[1] or (verdict.rule and seq not in rows.replaced):
                return None
            if name and name != call[2]:
                renamed.add(seq)
            answered += 1
        elif answered < len(asked) or (seq in calls and role != "assistant"):
            return None
        elif seq in calls:
            calling, asked, answered = seq, calls[seq], 0
    return None if answered < len(asked) else renamed


def _group_own_calls(
    rows: list[Row], accepted: AcceptedNames | None
) -> dict[int, list[Row]] | None:
    """Return calls by the position of their message; None if one is not sent as it is."""
    if accepted is None or not _accepts_calls(rows, accepted):
        return None
    calls: dict[int, list[Row]] = {}
    for row in rows:
        if row[-1] not in USUAL_CALL_RESTS:
            return None
        calls.setdefault(row[0], []).append(row)
    return calls


def _place_own_row(
    row: Row,
    calls: Sequence[Row],
    replaced: str | None,
    target: Format,
    *,
    is_usual: bool,
) -> PlacedMessage | None:
    """Return a row in its place, written by a template if it ``is_usual``.

    None if its content may be sent changed.
    """
    if replaced is not None:
        row = (*row[:-2], "text", replaced)
    seq, role, *_ = row
    try:
        whole = (seq, None, None, target.name, *row[1:])
        shaped = is_usual and shape_row(whole, calls)
    except (TypeError, ValueError, RecursionError):
        return None  # a text that is stored otherwise, or was changed: the general way tells
    written = write_row_parts(shaped) if shaped else None
    if written is None:
        return _place_unusual_row(row, calls)
    sent = [make_api_call((place, *call[1:3], None)) for place, call in enumerate(calls)]
    return PlacedMessage(seq, {"role": role}, None, (*sent,), row[4], written=written)


def _place_unusual_row(row: Row, calls: Sequence[Row]) -> PlacedMessage | None:
    """Return a row that the code of its format writes; None for a result with media."""
    stored = [join_call(*call[1:]) for call in calls]
    message = assemble_message(row[1:], stored or None)
    content = message.get("content")
    if message["role"] == "tool" and replace_media(content, Media.named) is not content:
        return None
    return place_row(row[0], message)


def write_plain_items(rows: LineRows, judged: Verdicts) -> list[Message] | None:
    """Return the items of a line as Responses sends them; None if the line is not plain."""
    calls = {row[0]: (row,) for row in rows.calls}
    accepted = _write_plain_calls(rows.calls, RESPONSES_NAMES)
    if accepted is None or len(calls) < len(rows.calls):
        return None
    sent: list[Message] = []
    waiting = _OpenCalls()
    for row in rows.messages:
        seq, role = row[0], row[1]
        theirs, verdict = calls.get(seq, ()), judged.get(seq)
        item = _restore_item(row, theirs, rows.replaced.get(seq))
        if item is None:
            return None
        if role != "tool":
            is_next = waiting.ask(role, theirs)
        elif verdict is None or (verdict.rule and seq not in rows.replaced):
            return None
        else:
            is_next = waiting.answer(verdict.call, item["call_id"])
        if not is_next:
            return None
        sent.append(item)
    return sent if waiting.are_answered else None


def _restore_item(
    row: Row,
    calls: Sequence[Row],
    replaced: str | None,
) -> Message | None:
    """Return an item of Responses as it is sent, None if it may be sent otherwise."""
    if not _OWN_REST[RESPONSES.name].match(row[-3] or ""):
        return None
    if replaced is not None:
        row = (*row[:-2], "text", replaced)
    whole = (row[0], None, None, RESPONSES.name, *row[1:])
    try:
        shaped = shape_row(whole, calls)
    except (TypeError, ValueError, RecursionError):
        return None  # a text that is stored otherwise, or was changed: the general way tells
    item = shaped and restore_row(shaped)
    if not item:
        stored = [join_call(*call[1:]) for call in calls]
        message = assemble_message(row[1:], stored or None)
        item = decode_message(RESPONSES.name, [message])
    return write_plain_item(item)
