"""Check whether the messages that were parsed from a file can be believed.

A kind is recognized by the look of its values, and other programs write values that look alike.
If a file is read as the wrong kind, its words end up in keys that no request contains, and its
results belong to no call. So the parsed messages are checked by writing them: in every format a
message must keep its words, in parts that the format knows, and a result must match a call. A file
with too many failures is refused before any of it is stored. A few are allowed: crashed writers
leave them, and so do types of items that are newer than this release.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from ..errors import InvalidMessage
from ..formats import (
    FORMATS,
    WIRE_KEY,
    ApiCall,
    PlacedMessage,
    PreparedMessage,
    encode_message,
    encode_parsed_message,
    prepare_message,
    replace_surrogates,
)
from ..records import Message
from ..tools import find_answered_call_id
from ..transcripts import (
    ITEM_TYPES,
    READER_FORMAT,
    Event,
    NoteEvent,
    SessionMessage,
    find_messages_program,
    get_fields,
    get_list,
    list_texts,
)

PROVIDER_FORMATS = [row.name for row in FORMATS.values() if row.codec]
"""The formats of requests to providers."""
SAMPLE_MESSAGES = 60
"""Messages, at most, that are checked of a file."""
SAMPLE_POINTS = 64 * 1024
"""Code points of words after which no more messages are checked."""
ALLOWED, SHARE = 1, 0.05
"""The messages with words that may be misread: this number, or this share of them."""
UNMATCHED_SHARE = 0.5
"""The share of results that may come while a call waits and answer no call."""
SEARCHED_TEXT_POINTS = 200
"""Code points of a text that are searched for in a request."""


PreparedMessages: TypeAlias = dict[int, tuple[SessionMessage, list[PreparedMessage]]]
"""Messages with their rows, by the identities of the objects that they are."""


class CheckedMessage(NamedTuple):
    """The words of a parsed message, and the rows that store it.

    ``is_foreign`` is True for a message that was read as a chat's and has parts or calls of another
    API.
    """

    words: list[str]
    rows: list[Message]
    is_foreign: bool


class TranscriptValidation:
    """The messages read from a file so far, and the check of them.

    ``prepared`` are their rows, so that nobody has to prepare them again.
    """

    def __init__(self) -> None:
        self.prepared: PreparedMessages = {}
        self._read: list[CheckedMessage] = []
        self._unread = 0
        self._size = 0

    def take(self, event: Event) -> None:
        """Take the next event of a parser."""
        if isinstance(event, NoteEvent):
            self._unread += event.speaks
        elif isinstance(event, SessionMessage):
            self._size += sum(map(len, list_texts(event.message)))
            self._read.append(self._check(event))

    @property
    def is_enough(self) -> bool:
        """Whether enough was read for the check."""
        return len(self._read) >= SAMPLE_MESSAGES or self._size >= SAMPLE_POINTS

    def problem(self) -> str | None:
        """Return the reason not to believe the file, None if there is none."""
        speaking = [each for each in self._read if each.words or each.is_foreign]
        misread = self._unread + sum(each.is_foreign for each in speaking)
        count = len(speaking) + self._unread
        if misread > max(ALLOWED, SHARE * count) or 0 < count == misread:
            return f"{misread} of {count} messages are in a shape that is not known"
        placed = [
            PlacedMessage(seq, row, None, _list_row_calls(row), find_answered_call_id(row))
            for seq, row in enumerate((row for each in speaking for row in each.rows), 1)
        ]
        for name in PROVIDER_FORMATS:
            silent = sum(_find_silent_messages(speaking, placed, name))
            if silent > max(ALLOWED, SHARE * count) or 0 < count == silent:
                return f"a request in the format {name} lacks words of {silent} of {count} messages"
        # A part of another API that comes while a call waits counts as an unrecognized result.
        waiting: Counter[str | None] = Counter()
        unmet = results = 0
        for each in self._read:
            for row in each.rows:
                if row["role"] == "tool" or (each.is_foreign and waiting):
                    results += 1
                    named = find_answered_call_id(row)
                    unmet += waiting.total() > 0 and not waiting[named]
                    waiting -= Counter([named])
                waiting.update(call.id or None for call in _list_row_calls(row))
        if unmet > UNMATCHED_SHARE * results:
            return f"{unmet} of {results} results meet no call"
        return None

    def _check(self, said: SessionMessage) -> CheckedMessage:
        try:
            prepared = prepare_file_message(said)
        except InvalidMessage:
            return CheckedMessage([], [], is_foreign=False)  # the note follows when it is stored
        self.prepared[id(said)] = said, prepared
        return _parse_checked_message(said, [each.message for each in prepared])


def prepare_file_message(said: SessionMessage) -> list[PreparedMessage]:
    """Return the rows that store a message of a file. Raises InvalidMessage."""
    if said.format == READER_FORMAT:
        came_as, rows = encode_parsed_message(said.message)
    else:
        came_as, rows = encode_message(said.message, said.format, 0)
    return [prepare_message(row)._replace(wire_format=came_as) for row in rows]


def _parse_checked_message(said: SessionMessage, rows: list[Message]) -> CheckedMessage:
    if said.message.get("type") in ITEM_TYPES and not any(map(_has_shown_content, rows)):
        return CheckedMessage([], rows, is_foreign=False)  # an item that only its own format has
    program = find_messages_program(row for row in rows if WIRE_KEY not in row)
    words = [replace_surrogates(text[:SEARCHED_TEXT_POINTS]) for text in list_texts(said.message)]
    return CheckedMessage(words, rows, is_foreign=program is not None)


def _has_shown_content(row: Message) -> bool:
    return row["role"] == "tool" or any(map(row.get, ("content", "tool_calls")))


def _find_silent_messages(
    speaking: list[CheckedMessage], placed: list[PlacedMessage], name: str
) -> Iterator[bool]:
    """Yield for each message whether words of it are missing in a request of a format.

    ``placed`` are the rows of all of them.
    """
    written = FORMATS[name].request(placed)
    sent = {*_list_all_texts([written.system, *written.messages])}
    whole = "\n".join(sent)
    for each in speaking:
        yield not all(
            text in sent or text in whole or json.dumps(text, ensure_ascii=False)[1:-1] in whole
            for text in each.words
        )


def _list_row_calls(row: Message) -> tuple[ApiCall, ...]:
    held = filter(None, map(get_fields, get_list(row.get("tool_calls"))))
    names = (str(each.get("id") or "") for each in held)
    return tuple(ApiCall(place, name, "tool", "{}") for place, name in enumerate(names))


def _list_all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for held in value.values():
            yield from _list_all_texts(held)
    elif isinstance(value, list):
        for held in value:
            yield from _list_all_texts(held)
