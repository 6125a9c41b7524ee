"""Sessions of Gemini CLI: one document, or lines that are replayed (``$set``, ``$rewindTo``).

A line has a whole message, and is repeated when the message has grown: the last one counts, at the
position of the first. Messages taken back by ``$rewindTo`` are a branch of the session. A replaced
context (``messages`` in ``$set``) changes the model's view, not the conversation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, MutableMapping
from itertools import chain, takewhile
from typing import Any

from ...records import Message
from ...text import JsonFields, format_count
from ..disk_buffer import BufferedMapping, DiskBuffer
from ..parser_events import (
    Event,
    ForkPoint,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_text,
    join_texts,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
    render_titles,
    split_metadata,
)
from ..source import SourceValue, TranscriptSource
from .parts import (
    join_gemini_thoughts,
    list_gemini_parts,
    list_gemini_responses,
    parse_gemini_call,
    parse_gemini_calls,
    parse_gemini_content,
    parse_gemini_response,
)

__all__ = ["is_gemini_cli_value", "parse_gemini_cli"]

GEMINI_RECORD_ROLES = {"user": "user", "gemini": "assistant"}
"""Type of a record that the model saw → role; others are notices of the program."""

FAILED_GEMINI_STATES = ("error", "cancelled")
"""States of a call that did not succeed."""

_GEMINI_RECORD_KEYS = ("id", "timestamp", "type", "content", "toolCalls")


def is_gemini_message(value: object) -> bool:
    """Tell whether a record is a message, and can be read."""
    fields = get_fields(value)
    return get_text(fields.get("type")) in GEMINI_RECORD_ROLES and "content" in fields


def _add_record_fields(message: Message, name: str, record: JsonFields) -> Message:
    """Return a message with its id, its time, and what else its record says."""
    extra = drop_empty_fields(drop_keys(record, *_GEMINI_RECORD_KEYS))
    more: JsonFields = {"gemini_cli": extra} if extra else {}
    return message | {"id": name} | _parse_gemini_time(record) | more


def _parse_gemini_call_result(call: JsonFields, fallback: str) -> Iterator[Message]:
    """Yield the result of a call, where it has one, and how the screen showed it."""
    if call.get("result") in (None, [], ""):
        return
    parts = list_gemini_parts(call["result"])
    beside = parse_gemini_content(parts)
    responses = list_gemini_responses(parts)
    if not responses:
        message = {"role": "tool", "content": beside}
    else:
        message = parse_gemini_response(responses[0])
        if beside:
            message["content"] = [
                *list_gemini_parts(message["content"]),
                *list_gemini_parts(beside),
            ]
    message["tool_call_id"] = get_text(call.get("id")) or fallback
    if call.get("status") in FAILED_GEMINI_STATES:
        message["messageStatus"] = "error"
    extra = drop_empty_fields(drop_keys(call, "id", "name", "args", "result", "timestamp"))
    yield message | _parse_gemini_time(call) | ({"gemini_cli": extra} if extra else {})


def _parse_gemini_time(fields: JsonFields) -> JsonFields:
    moment = parse_iso_milliseconds(fields.get("timestamp"))
    return {} if moment is None else {"timestamp": moment}


GEMINI_HEAD_KEYS = {"sessionId", "projectHash"}

RecordsById = MutableMapping[str, JsonFields]
"""The records of a session's messages, each under its id."""


def is_gemini_cli_value(value: Any) -> bool:
    """Tell whether a JSON value is a session's head, or a message that can be read."""
    fields = get_fields(value)
    if not fields.keys() >= GEMINI_HEAD_KEYS:
        return {"id", "timestamp"} <= fields.keys() and is_gemini_message(fields)
    messages = get_list(fields.get("messages"))
    return not messages or any(map(is_gemini_message, messages))


def parse_gemini_cli(source: TranscriptSource) -> Iterator[Event]:
    """Return the session of a file, then each stretch of it that was taken back, then the notes."""
    with DiskBuffer() as buffer:
        chat = _GeminiReplay(buffer)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
            else:
                yield from chat.take(item)
        yield from chat.events(source.stem)


class _GeminiReplay:
    """Replay a file.

    ``_left`` are the parts taken back, each with the number of messages before it.
    """

    def __init__(self, buffer: DiskBuffer) -> None:
        self._buffer = buffer
        self._head: JsonFields = {}
        self._records: RecordsById = BufferedMapping(buffer)
        self._left: list[tuple[int, RecordsById]] = []
        self._contexts: list[JsonFields] = []

    def take(self, item: SourceValue) -> Iterator[NoteEvent]:
        """Take one value; yield a note if it cannot be read."""
        fields = get_fields(item.value)
        if get_text(fields.get("$rewindTo")):
            self._rewind(fields["$rewindTo"])
        elif get_text(fields.get("id")):
            self._records[fields["id"]] = fields
        elif "$set" in fields or "sessionId" in fields:
            self._set(get_fields(fields.get("$set", fields)))
        else:
            yield note_unread_value(item.row, item.value, "no line of a session")

    def events(self, stem: str) -> Iterator[Event]:
        """Return all sessions, their messages, and the notes."""
        name = get_text(self._head.get("sessionId")) or stem
        metadata, notes = self._metadata()
        titles = (self._head.get("summary"), find_title(_parse_gemini_records(self._records)))
        known = render_titles(titles)
        yield SessionEvent(name, find_first_text(known), None, metadata, titles=known)
        yield from map(SessionMessage, _parse_gemini_records(self._records))
        yield from self._branches(name)
        yield from self._notes()
        yield from notes

    def _branches(self, name: str) -> Iterator[Event]:
        for after, records in self._left:
            branch = f"{name}/branch-{next(iter(records))}"
            link: JsonFields = {"parent_session": name, "forked_at": after}
            count = _count_record_messages(records)
            if count:
                title = find_title(_parse_gemini_records(records))
                yield SessionEvent(branch, title, None, link, stem=ForkPoint(name, after))
                yield from map(SessionMessage, _parse_gemini_records(records))
                messages = format_count(count, "message")
                yield NoteEvent(None, f"{messages} that were taken back are session {branch!r}")

    def _rewind(self, to: str) -> None:
        """Take out a message and all after it; all messages where it is none of them."""
        names = list(self._records)
        self._cut(names.index(to) if to in self._records else 0)

    def _cut(self, place: int) -> None:
        names = list(self._records)
        taken = BufferedMapping(self._buffer)
        for name in names[place:]:
            taken[name] = self._records.pop(name)
        if taken:
            self._left.append((_count_record_messages(self._records), taken))

    def _set(self, fields: JsonFields) -> None:
        self._head |= drop_keys(fields, "messages")
        messages = map(get_fields, get_list(fields.get("messages")))
        told = {each["id"]: each for each in messages if get_text(each.get("id"))}
        if told:
            self._replace(told)

    def _replace(self, told: RecordsById) -> None:
        """Take a context: add its new messages; those missing at its end were taken back."""
        pairs = zip(self._records, told, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if same == len(self._records):
            for name, each in told.items():
                known = self._records.get(name)
                self._records[name] = (
                    each
                    if known is None
                    else max(known, each, key=lambda item: len(json.dumps(item)))
                )
        elif same == len(told):
            self._cut(same)
        else:
            self._note_context(told)

    def _note_context(self, told: RecordsById) -> None:
        new = [each for name, each in told.items() if name not in self._records]
        after = _count_record_messages(self._records)
        self._contexts.append({"after": after, "messages": len(told), "new": new})

    def _metadata(self) -> tuple[JsonFields, list[NoteEvent]]:
        extra = drop_keys(self._head, "sessionId", "summary")
        if self._contexts:
            extra["contexts"] = self._contexts
        kept, notes = split_metadata(extra)
        answers = map(self._records.__getitem__, [*self._records][::-1])
        model = find_first_text(get_text(record.get("model")) for record in answers)
        return ({"model": model} if model else {}) | {"gemini_cli": kept}, notes

    def _notes(self) -> Iterator[NoteEvent]:
        left = (records.values() for _, records in self._left)
        every = chain(self._records.values(), *left)
        unsaid = (str(each.get("type")) for each in every if not is_gemini_message(each))
        yield from list_omission_notes(Counter((kind, "") for kind in unsaid), "message")
        if self._contexts:
            places = ", ".join(str(each["after"]) for each in self._contexts)
            text = f"the context was replaced after message {places}"
            yield NoteEvent(None, f"{text}: all messages stay, what is new in it is metadata")


def _parse_gemini_records(records: RecordsById) -> Iterator[Message]:
    for name, each in records.items():
        if is_gemini_message(each):
            parts = list_gemini_parts(each["content"])
            calls = list(map(get_fields, get_list(each.get("toolCalls"))))
            if each["type"] == "gemini":
                made = [
                    parse_gemini_call(call, f"{name}-call-{number}")
                    for number, call in enumerate(calls, 1)
                ]
                message: Message = {"role": "assistant", "content": parse_gemini_content(parts)}
                made = made or parse_gemini_calls(parts, name)
                thoughts = (
                    join_texts(map(thought.get, ("subject", "description")), ": ")
                    for thought in map(get_fields, get_list(each.get("thoughts")))
                )
                reasoning = join_texts((*thoughts, join_gemini_thoughts(parts)), "\n")
                if made:
                    message["tool_calls"] = made
                if reasoning:
                    message["reasoning_content"] = reasoning
                yield _add_record_fields(message, name, each)
            elif parse_gemini_content(parts) or not list_gemini_responses(parts):
                yield _add_record_fields(
                    {"role": "user", "content": parse_gemini_content(parts) or ""}, name, each
                )
            for number, call in enumerate(calls, 1):
                yield from _parse_gemini_call_result(call, f"{name}-call-{number}")


def _count_record_messages(records: RecordsById) -> int:
    return sum(1 for _ in _parse_gemini_records(records))
