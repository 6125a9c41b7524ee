"""Sessions of goose: its database, its exports and its older files of lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ..records import Message
from ..text import JsonFields
from .database import Layout, SqliteConnection, parse_json_cell
from .parser_events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    build_chat_call,
    build_text_part,
    convert_to_milliseconds,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_omission,
    note_unread_value,
    parse_iso_milliseconds,
    render_titles,
    simplify_content,
    split_metadata,
)
from .source import TranscriptSource
from .trees import insert_compactions

__all__ = ["GOOSE_LAYOUT", "is_goose_value", "parse_goose"]

SELECT_GOOSE_SESSIONS = "SELECT * FROM sessions ORDER BY rowid"

SELECT_GOOSE_MESSAGES = "SELECT * FROM messages WHERE session_id = :name ORDER BY id"

JSON_COLUMN_ENDING = "_json"
"""The end of the names of columns that hold JSON."""


def _load_goose_sessions(rows: SqliteConnection) -> Iterator[Any]:
    for row in rows.execute(SELECT_GOOSE_SESSIONS):
        found = rows.execute(SELECT_GOOSE_MESSAGES, {"name": row["id"]})
        yield _decode_goose_row(row) | {"conversation": list(map(_build_goose_message, found))}


def _build_goose_message(row: sqlite3.Row) -> JsonFields:
    fields = _decode_goose_row(row)
    number, name = fields.pop("id", ""), fields.pop("message_id", None)
    created = fields.pop("created_timestamp", None)
    return {**fields, "id": name or f"message-{number}", "created": created}


def _decode_goose_row(row: sqlite3.Row) -> JsonFields:
    """Return a row's cells, with JSON cells decoded."""
    cells = zip(row.keys(), row, strict=True)
    return {
        key.removesuffix(JSON_COLUMN_ENDING): parse_json_cell(cell)
        if key.endswith(JSON_COLUMN_ENDING)
        else cell
        for key, cell in cells
        if cell is not None
    }


GOOSE_LAYOUT = Layout(
    frozenset({"messages.content_json", "sessions.working_dir"}), _load_goose_sessions
)
"""How goose's database is laid out."""


GOOSE_ROLES = ("user", "assistant")

GOOSE_CALL_TYPES = ("toolRequest", "frontendToolRequest")
GOOSE_RESULT_TYPE = "toolResponse"
GOOSE_THOUGHT_TYPES = ("thinking", "redactedThinking")
GOOSE_SCREEN_TYPES = ("toolConfirmationRequest", "actionRequired", "systemNotification")
"""Types of parts that were for the screen."""

_GOOSE_MESSAGE_KEYS = ("id", "role", "content", "created", "metadata", "session_id", "timestamp")


def is_goose_message(value: object) -> bool:
    """Tell whether a JSON value is a message that can be read."""
    fields = get_fields(value)
    content = fields.get("content")
    return fields.get("role") in GOOSE_ROLES and "created" in fields and isinstance(content, list)


def is_goose_only_message(value: object) -> bool:
    """Tell whether a message is goose's, by a part that only goose has or by its ``created``."""
    fields = get_fields(value)
    kinds = {get_text(part.get("type")) for part in get_objects(fields.get("content"))}
    known = {*GOOSE_CALL_TYPES, GOOSE_RESULT_TYPE, *GOOSE_SCREEN_TYPES}
    return is_goose_message(value) and (bool(kinds & known) or isinstance(fields["created"], int))


def parse_goose_message(name: str, told: JsonFields) -> list[Message]:
    """Return what a message amounts to; the first has its id."""
    parts = get_objects(told["content"])
    made = [_parse_goose_result(part) for part in parts if part.get("type") == GOOSE_RESULT_TYPE]
    made += filter(None, [_parse_goose_parts(told["role"], parts)])
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
    extra = drop_empty_fields(drop_keys(told, *_GOOSE_MESSAGE_KEYS) | _collect_answer_facts(told))
    if made and extra:
        made[0]["goose"] = extra | made[0].get("goose", {})
    return [
        message | drop_empty_fields({"timestamp": convert_to_milliseconds(told.get("created"))})
        for message in made
    ]


def _collect_answer_facts(told: JsonFields) -> JsonFields:
    """Return the model of an answer and its cost, as newer versions tell them."""
    metadata = get_fields(told.get("metadata"))
    return {
        "model": get_nested(metadata, "inference", "resolvedModel"),
        "usage": metadata.get("usage"),
    }


def _parse_goose_parts(role: str, parts: list[JsonFields]) -> Message | None:
    """Return the text, thoughts and calls as a message; None if there are none."""
    calls = [part for part in parts if part.get("type") in GOOSE_CALL_TYPES]
    content = simplify_content(list(map(_parse_goose_part, filter(_is_goose_content, parts))))
    message = drop_empty_fields(
        {"tool_calls": list(map(_parse_goose_call, calls)), **_parse_goose_thoughts(parts)}
    )
    if not content and not message:
        return None
    extra = drop_empty_fields({"calls": list(filter(None, map(_collect_goose_call_extra, calls)))})
    return {"role": role, "content": content, **message} | drop_empty_fields({"goose": extra})


def _is_goose_content(part: JsonFields) -> bool:
    return part.get("type") not in (
        *GOOSE_CALL_TYPES,
        GOOSE_RESULT_TYPE,
        *GOOSE_THOUGHT_TYPES,
        *GOOSE_SCREEN_TYPES,
    )


def _parse_goose_thoughts(parts: list[JsonFields]) -> JsonFields:
    """Return thoughts: as Anthropic's blocks where all are signed, else as text."""
    thoughts = [part for part in parts if part.get("type") in GOOSE_THOUGHT_TYPES]
    if all(part.get("signature") or part.get("data") for part in thoughts):
        return {"thinking_blocks": list(map(_build_goose_thought_block, thoughts))}
    return {"reasoning_content": join_texts(part.get("thinking") for part in thoughts)}


def _build_goose_thought_block(part: JsonFields) -> JsonFields:
    kind = "thinking" if part["type"] == "thinking" else "redacted_thinking"
    return {**part, "type": kind}


def _parse_goose_part(part: JsonFields) -> JsonFields:
    match part:
        case {"type": "text", "text": str(text)}:
            return build_text_part(text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    return part


def _parse_goose_call(part: JsonFields) -> JsonFields:
    asked = {"name": "unknown", **get_fields(get_nested(part, "toolCall", "value"))}
    return build_chat_call(part.get("id"), asked["name"], asked.get("arguments"))


def _collect_goose_call_extra(part: JsonFields) -> JsonFields:
    """Return what a call says beside its name and arguments, such as why it could not be read."""
    rest = drop_keys(part, "type", "id", "toolCall")
    return drop_empty_fields({**rest, "error": get_nested(part, "toolCall", "error")})


def _parse_goose_result(part: JsonFields) -> Message:
    told = get_fields(part.get("toolResult"))
    value = told.get("value")
    content = get_objects(value) or get_objects(get_nested(value, "content"))
    failed = told.get("status") == "error" or get_nested(value, "isError") is True
    said = simplify_content(list(map(_parse_goose_part, content))) or told.get("error")
    message: Message = {"role": "tool", "content": said or "", "tool_call_id": part.get("id")}
    return message | drop_empty_fields({"messageStatus": "error" if failed else ""})


MessageGroups = list[list[Message]]
"""What each message of goose's amounts to."""

GOOSE_SESSION_KEYS = ("id", "name", "description", "working_dir", "conversation", "created_at")


def is_goose_value(value: Any) -> bool:
    """Tell whether a value is a session, the head of one, or a message that only goose writes."""
    fields = get_fields(value)
    return (
        "working_dir" in fields and (_has_goose_conversation(fields) or _is_goose_head(fields))
    ) or is_goose_only_message(value)


def _has_goose_conversation(fields: JsonFields) -> bool:
    return isinstance(fields.get("conversation"), list)


def _is_goose_head(fields: JsonFields) -> bool:
    return not {"description", "message_count"}.isdisjoint(fields)


def parse_goose(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file or a database, and the notes."""
    names = SessionNames(source.stem)
    lines: list[Any] = []
    head: JsonFields = {}
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif _has_goose_conversation(get_fields(item.value)):
            yield from _parse_goose_session(item.value, names.name(get_text(item.value.get("id"))))
        elif not lines and not head and _is_goose_head(get_fields(item.value)):
            head = item.value
        else:
            lines.append(item.value)
    if lines:
        yield from _parse_goose_session({**head, "conversation": lines}, names.name())


def _parse_goose_session(told: JsonFields, name: str) -> Iterator[Event]:
    known = list(filter(is_goose_message, told["conversation"]))
    made = [
        parse_goose_message(get_text(each.get("id")) or f"message-{place}", each)
        for place, each in enumerate(known, 1)
    ]
    messages = list(chain.from_iterable(made))
    if not messages:
        return
    given = map(told.get, ("name", "description"))
    titles = render_titles((*given, find_title(messages)))
    kept, notes = split_metadata(drop_empty_fields(drop_keys(told, *GOOSE_SESSION_KEYS)))
    metadata = drop_empty_fields(
        {"model": get_text(get_nested(told, "model_config", "model_name"))}
    ) | drop_empty_fields({"goose": kept})
    created = parse_iso_milliseconds(told.get("created_at"))
    root = get_text(told.get("working_dir"))
    opened = SessionEvent(
        name, find_first_text(titles), root, metadata, titles=titles, created_at=created
    )
    events: Iterator[Event] = chain([opened], map(SessionMessage, messages))
    yield from insert_compactions(events, _find_goose_compactions(known, made))
    yield from _list_goose_omissions(told, made, len(known))
    yield from notes


def _find_goose_compactions(
    known: list[JsonFields], made: MessageGroups
) -> dict[int, CompactionEvent]:
    """Return where the first messages went out of sight, if they did and others followed."""
    hidden = 0
    for told, said in zip(known, made, strict=True):
        if get_nested(told, "metadata", "agentVisible") is not False:
            return {hidden: CompactionEvent(hidden)} if hidden else {}
        hidden += len(said)
    return {}


def _list_goose_omissions(told: JsonFields, made: MessageGroups, known: int) -> Iterator[NoteEvent]:
    for each in told["conversation"]:
        if not is_goose_message(each):
            yield note_unread_value(None, each, "no message")
    silent = known - sum(map(bool, made))
    if silent:
        yield note_omission(silent, "notice", ", which were for the screen")
