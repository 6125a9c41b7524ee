"""Sessions of Droid, and its output as ``stream-json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from ..records import Message
from ..text import JsonFields
from .blocks import build_assistant_message, build_user_messages, parse_blocks
from .disk_buffer import BufferedMapping, DiskBuffer
from .parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_text,
    join_texts,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
    render_as_text,
    render_sketch,
    render_titles,
    split_metadata,
)
from .source import TranscriptSource
from .trees import Tree, build_tree_events

__all__ = ["is_droid_value", "parse_droid"]

INIT, SAID, CALLED, RETURNED = "system", "message", "tool_call", "tool_result"

FOREIGN_INIT_KEYS = {"mcp_servers", "apiKeySource", "permissionMode", "uuid"}
"""Keys by which the first row of a program that prints much the same is told."""

_DROID_MESSAGE_KEYS = ("type", "role", "id", "text", "timestamp", "session_id")
_DROID_CALL_KEYS = ("type", "id", "messageId", "toolName", "parameters", "timestamp", "session_id")
_DROID_RESULT_KEYS = (
    *("type", "id", "messageId", "isError", "value", "error"),
    "timestamp",
    "session_id",
)


def is_droid_row(value: object) -> bool:
    """Tell whether a value is a row that can be read."""
    fields = get_fields(value)
    if not get_text(fields.get("session_id")):
        return False
    match fields.get("type"):
        case "system":
            return fields.get("subtype") == "init" and (
                {"tools", "model"} <= fields.keys() and not FOREIGN_INIT_KEYS & fields.keys()
            )
        case "message":
            return fields.get("role") in ("user", "assistant", "system") and "text" in fields
        case "tool_call":
            return "toolName" in fields
        case "tool_result":
            return not {"value", "error"}.isdisjoint(fields)
    return False


def parse_droid_rows(rows: Iterable[JsonFields]) -> list[Message]:
    """Return the messages of a session's rows; calls are with the answer that they belong to."""
    made: list[Message] = []
    answers: dict[Any, Message] = {}
    for row in rows:
        if row["type"] == CALLED:
            name = row.get("messageId")
            if name not in answers:
                answers[name] = {"role": "assistant", "content": None} | _collect_droid_extra(
                    row, row.get("messageId"), row
                )
                made.append(answers[name])
            answers[name].setdefault("tool_calls", []).append(
                build_chat_call(row.get("id"), row["toolName"], row.get("parameters"))
            )
        elif row["type"] == RETURNED:
            made.append(_parse_droid_result(row))
        elif row["type"] == SAID:
            said: Message = {"role": row["role"], "content": get_text(row["text"]) or ""}
            made.append(said | _collect_droid_extra(row, row.get("id"), _DROID_MESSAGE_KEYS))
            answers[row.get("id")] = made[-1]
    return made


def _parse_droid_result(row: JsonFields) -> Message:
    value = row.get("value", row.get("error"))
    said = render_as_text(value)
    status = "error" if row.get("isError") is True else ""
    told = drop_empty_fields({"tool_call_id": row.get("id"), "messageStatus": status})
    return (
        {"role": "tool", "content": said}
        | told
        | _collect_droid_extra(row, None, _DROID_RESULT_KEYS)
    )


def _collect_droid_extra(row: JsonFields, name: Any, said: Iterable[str]) -> JsonFields:
    """Return a row's id and time, and what else it says."""
    moment = row.get("timestamp")
    at = moment if type(moment) is int else None
    rest = drop_empty_fields(drop_keys(row, *said))
    return drop_empty_fields({"id": get_text(name), "timestamp": at, "droid": rest})


DROID_ROLES = ("user", "assistant")

HIDDEN_VISIBILITY = "user_only"
"""The visibility of a message that was sent to no model."""

_DROID_HEAD_KEYS = ("type", "id", "title", "sessionTitle", "cwd")
_DROID_ENTRY_KEYS = ("type", "id", "parentId", "timestamp", "message")


DROID_HEAD_TYPE = "session_start"

DROID_INIT_KEYS = ("type", "subtype", "cwd", "session_id", "model")
"""Keys of a stream's first row that its session says."""


def is_droid_value(value: Any) -> bool:
    """Tell whether a value is a session's head, or a row of a stream."""
    fields = get_fields(value)
    return (fields.get("type") == DROID_HEAD_TYPE and "id" in fields) or is_droid_row(value)


def parse_droid(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches, then the notes."""
    rows: list[JsonFields] = []
    with DiskBuffer() as buffer:
        chat = _DroidSession({"id": source.stem}, buffer)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
            elif is_droid_row(item.value):
                rows.append(item.value)
            elif is_droid_value(item.value):
                yield from chat.events()
                chat = _DroidSession(item.value, buffer)
            elif rows:
                yield NoteEvent(
                    item.row, f"left out {render_sketch(item.value)}", left_out=1, thing="row"
                )
            elif get_text(get_fields(item.value).get("type")):
                chat.take(item.value)
            else:
                yield note_unread_value(item.row, item.value, "no entry of a session")
        yield from chat.events()
    yield from _parse_droid_stream(rows, source.stem)


def _parse_droid_stream(rows: list[JsonFields], stem: str) -> Iterator[Event]:
    """Yield the session of a stream."""
    messages = parse_droid_rows(rows)
    if not messages:
        return
    heads = (row for row in rows if row["type"] == INIT)
    head = next(heads, rows[0])
    name = get_text(rows[0].get("session_id")) or stem
    told = drop_keys(head, *DROID_INIT_KEYS) if head["type"] == INIT else {}
    metadata = drop_empty_fields({"model": get_text(head.get("model")), "droid": told})
    yield SessionEvent(name, find_title(messages), get_text(head.get("cwd")), metadata)
    yield from map(SessionMessage, messages)


class _DroidSession:
    """A session: its head, its entries under their ids, and which one each follows."""

    def __init__(self, head: JsonFields, buffer: DiskBuffer) -> None:
        self._head = head
        self._entries = BufferedMapping(buffer)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None
        self._unsaid: Counter[tuple[str, str]] = Counter()

    def take(self, entry: JsonFields) -> None:
        """Take the next entry; one that does not tell follows the message before it."""
        said = get_fields(entry.get("message"))
        is_sent = said.get("role") in DROID_ROLES and said.get("visibility") != HIDDEN_VISIBILITY
        if not (is_sent and parse_blocks(said.get("content")) is not None):
            self._unsaid[str(entry["type"]), ""] += 1
            return
        name = get_text(entry.get("id")) or f"entry-{len(self._entries) + 1}"
        parent = get_text(entry.get("parentId"))
        self._parents[name] = parent if parent in self._parents else self._last
        self._entries[name] = entry
        self._last = name

    def events(self) -> Iterator[Event]:
        """Return the session, its branches, and the notes."""
        if self._entries:
            opened, notes = self._opened()
            yield from build_tree_events(Tree(self._parents, self._last, self._messages_of), opened)
            yield from list_omission_notes(self._unsaid, "entry")
            yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        entry = self._entries[name]
        said = entry["message"]
        blocks = parse_blocks(said.get("content")) or []
        if said["role"] == "assistant":
            # Thoughts that are not signed are text, as no API takes them back.
            unsigned = [
                block
                for block in blocks
                if block.get("type") == "thinking" and not block.get("signature")
            ]
            signed = [block for block in blocks if block not in unsigned]
            texts = join_texts(block.get("thinking") for block in unsigned)
            thoughts = drop_empty_fields({"reasoning_content": texts})
            made = [build_assistant_message(signed)[0] | thoughts]
        else:
            made = build_user_messages(said.get("content"), blocks)
            for result in made:
                if "claude_code" in result:
                    result["droid"] = result.pop("claude_code")
        for number, message in enumerate(made, 1):
            message["id"] = name if number == 1 else f"{name}-{number}"
        extra = {**drop_keys(entry, *_DROID_ENTRY_KEYS), **drop_keys(said, "role", "content")}
        known = {**made[0].get("droid", {}), **drop_empty_fields(extra)}
        made[0] |= drop_empty_fields({"droid": known})
        return [
            message
            | drop_empty_fields({"timestamp": parse_iso_milliseconds(entry.get("timestamp"))})
            for message in made
        ]

    def _opened(self) -> tuple[SessionEvent, list[NoteEvent]]:
        head = self._head
        said = chain.from_iterable(map(self._messages_of, self._entries))
        titles = render_titles((*map(head.get, ("sessionTitle", "title")), find_title(said)))
        known = drop_empty_fields(drop_keys(head, *_DROID_HEAD_KEYS))
        kept, notes = split_metadata(known)
        parent = find_first_text(map(head.get, ("callingSessionId", "parent")))
        metadata = drop_empty_fields({"parent_session": parent, "droid": kept})
        root = get_text(head.get("cwd"))
        title = find_first_text(titles)
        return SessionEvent(str(head["id"]), title, root, metadata, titles=titles), notes
