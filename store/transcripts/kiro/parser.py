"""Sessions of Kiro: chats in its database, files of lines or records, and the files next to them.

Kiro CLI kept a database, then a file of lines for each session. Newer sessions, and those of the
IDE from 1.0, are folders with a file of records.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..database import Layout, SqliteConnection, parse_json_cell
from ..parser_events import (
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
    get_list,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    list_omission_notes,
    note_omission,
    note_unread_value,
    parse_iso_milliseconds,
    render_titles,
    split_metadata,
)
from ..source import TranscriptSource
from ..trees import Tree, build_tree_events, insert_compactions, list_ancestors
from . import records
from .executions import SUB_EXECUTIONS_FOLDER, load_sub_execution

SELECT_KIRO_CHATS = """
    SELECT key, conversation_id, value, created_at FROM conversations_v2
    ORDER BY created_at, conversation_id
"""


def _load_kiro_chats(rows: SqliteConnection) -> Iterator[Any]:
    for folder, name, value, created in rows.execute(SELECT_KIRO_CHATS):
        chat = get_fields(parse_json_cell(value))
        if chat:
            yield {"cwd": folder, "created_at": created, **chat, "conversation_id": name}
        else:
            yield NoteEvent(None, f"the chat {name!r} is left out, it is no JSON", broken=True)


KIRO_LAYOUT = Layout(
    frozenset({"conversations_v2.key", "conversations_v2.value"}), _load_kiro_chats
)
"""The layout of Kiro's database."""


def is_kiro_turn(value: object) -> bool:
    """Tell whether a JSON value is a turn that can be read."""
    fields = get_fields(value)
    answer = get_fields(fields.get("assistant"))
    asked = get_nested(fields, "user", "content")
    # nothing was asked if the agent goes on by itself
    return isinstance(asked, dict | None) and not {"Response", "ToolUse"}.isdisjoint(answer)


def parse_kiro_turn(turn: JsonFields, number: int) -> list[Message]:
    """Return the messages of a turn: only the answer if the agent went on by itself."""
    return [*_parse_turn_request(get_fields(turn.get("user"))), _parse_turn_answer(turn, number)]


def _parse_turn_request(user: JsonFields) -> Iterator[Message]:
    at = drop_empty_fields({"timestamp": parse_iso_milliseconds(user.get("timestamp"))})
    for told in map(get_fields, get_fields(user.get("content")).values()):
        for result in get_objects(told.get("tool_use_results")):
            said = "\n".join(map(_render_turn_result_part, get_objects(result.get("content"))))
            status = {"messageStatus": "error" if result.get("status") == "Error" else None}
            message: Message = {
                "role": "tool",
                "tool_call_id": result.get("tool_use_id"),
                "content": said,
            }
            yield (message | drop_empty_fields(status)) | at
        if get_text(told.get("prompt")):
            extra = drop_empty_fields(drop_keys(user, "content", "timestamp"))
            yield (
                {"role": "user", "content": told["prompt"]}
                | at
                | drop_empty_fields({"kiro": extra})
            )


def _render_turn_result_part(part: JsonFields) -> str:
    told = part.get("Text", part.get("Json"))
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)


def _parse_turn_answer(turn: JsonFields, number: int) -> Message:
    told = get_fields(next(iter(turn["assistant"].values())))
    request = get_fields(turn.get("request_metadata"))
    usage = {key: held for key, held in request.items() if key.endswith("_tokens")}
    rest = drop_keys(request, *usage)
    facts = {"model": request.get("model_id"), "usage": usage, "request": rest}
    more = {
        "tool_calls": list(map(_parse_turn_call, get_objects(told.get("tool_uses")))),
        "timestamp": request.get("stream_end_timestamp_ms"),
        "kiro": drop_empty_fields(facts),
    }
    name = get_text(told.get("message_id")) or f"answer-{number}"
    said = get_text(told.get("content"))
    return {"role": "assistant", "content": said, "id": name} | drop_empty_fields(more)


def _parse_turn_call(told: JsonFields) -> JsonFields:
    arguments = told.get("args") or told.get("orig_args")
    return build_chat_call(told.get("id"), told.get("name"), arguments)


KIRO_LINE_ROLES = {"Prompt": "user", "AssistantMessage": "assistant", "ToolResults": "tool"}
"""Kind of a line → role in the chat."""

KIRO_PART_KINDS = ("text", "thinking", "toolUse")
"""Kinds of parts that a message expresses in its own way."""

_KIRO_LINE_KEYS = ("message_id", "content", "results")


def is_kiro_line(value: object) -> bool:
    """Tell whether a JSON value is a line of such a file."""
    fields = get_fields(value)
    return isinstance(fields.get("kind"), str) and bool(get_fields(fields.get("data")))


def is_kiro_message(line: JsonFields) -> bool:
    """Tell whether a line is a message that can be read."""
    return line["kind"] in KIRO_LINE_ROLES and isinstance(line["data"].get("content"), list)


def parse_kiro_line(line: JsonFields) -> list[Message]:
    """Return the messages of a line; the first one has the id of the line."""
    told = line["data"]
    parts = get_objects(told["content"])
    if line["kind"] == "ToolResults":
        made = list(
            map(_parse_kiro_result, map(get_fields, _list_kiro_part_data(parts, "toolResult")))
        )
    else:
        made = [_parse_kiro_parts(KIRO_LINE_ROLES[line["kind"]], parts)]
    for number, message in enumerate(made, 1):
        name = get_text(told.get("message_id"))
        ending = "" if number == 1 else f"-{number}"
        message.update({"id": name + ending} if name else {})
    extra = drop_empty_fields(drop_keys(told, *_KIRO_LINE_KEYS))
    return [
        each
        | drop_empty_fields(
            {"timestamp": convert_to_milliseconds(get_nested(told, "meta", "timestamp"))}
        )
        | drop_empty_fields({"kiro": extra})
        for each in made
    ]


def _parse_kiro_parts(role: str, parts: list[JsonFields]) -> Message:
    content = join_texts(map(_parse_kiro_text, _list_kiro_part_data(parts, "text")), "\n")
    others = [
        {"type": str(part.get("kind")), "data": part.get("data")}
        for part in parts
        if part.get("kind") not in KIRO_PART_KINDS
    ]
    more = {
        "reasoning_content": join_texts(
            map(_parse_kiro_text, _list_kiro_part_data(parts, "thinking"))
        ),
        "tool_calls": list(map(_parse_kiro_call, _list_kiro_part_data(parts, "toolUse"))),
    }
    said: Any = [build_text_part(content), *others] if others else content
    if role == "assistant" and not said:
        said = None
    return {"role": role, "content": said} | drop_empty_fields(more)


def _list_kiro_part_data(parts: list[JsonFields], kind: str) -> list[Any]:
    return [part.get("data") for part in parts if part.get("kind") == kind]


def _parse_kiro_text(data: Any) -> str:
    return get_text(data) or get_text(get_nested(data, "text")) or ""


def _parse_kiro_call(data: Any) -> JsonFields:
    told = get_fields(data)
    return build_chat_call(told.get("toolUseId"), told.get("name"), told.get("input"))


def _parse_kiro_result(told: JsonFields) -> Message:
    content = told.get("content")
    said = get_text(content) or "\n".join(map(_render_kiro_result_part, get_objects(content)))
    message: Message = {"role": "tool", "tool_call_id": told.get("toolUseId"), "content": said}
    return message | drop_empty_fields(
        {"messageStatus": "error" if told.get("status") == "error" else None}
    )


def _render_kiro_result_part(part: JsonFields) -> str:
    data = part.get("data")
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


KIRO_CHAT_KEYS = (
    "history",
    "conversation_id",
    "cwd",
    "created_at",
    "transcript",
    "tools",
    "model_info",
)
"""Keys of a chat that are read into its session, repeat it, or define its tools."""

KIRO_FOLDER_PATH = ("user", "env_context", "env_state", "current_working_directory")
"""The path of keys to the folder in which a turn was asked."""

KIRO_SIDECAR_KEYS = ("session_state", "session_id", "cwd", "title")
"""Keys of the file next to a session that are read into the session, or repeat it."""

KIRO_METADATA_FILE = "session.json"
"""The file with the metadata of a session, next to its file of records."""

KIRO_PARENT_KEYS = ("rootConversationId", "parentSessionId")
"""Keys of that file for the session that this one comes from."""
KIRO_SHARED_KEYS = ("modelId", "workspacePaths")
"""Keys of that file that hold for sub-agents, too."""
KIRO_METADATA_KEYS = ("id", "title", "createdAt", *KIRO_PARENT_KEYS, *KIRO_SHARED_KEYS)
"""Keys of that file that are read into the session."""


def is_kiro_value(value: Any) -> bool:
    """Tell whether a JSON value is a chat, or a line of a file."""
    fields = get_fields(value)
    is_chat = any(map(is_kiro_turn, get_list(fields.get("history"))))
    is_empty = fields.get("history") == [] and "conversation_id" in fields
    is_line = is_kiro_line(value) and is_kiro_message(fields)
    return is_chat or is_empty or is_line or records.is_kiro_record(value)


def parse_kiro(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a database, or the one of a file."""
    names = SessionNames(source.stem)
    lines: list[JsonFields] = []
    written: list[JsonFields] = []
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif is_kiro_line(item.value):
            lines.append(item.value)
        elif records.is_kiro_record(item.value):
            written.append(item.value)
        elif is_kiro_value(item.value):
            yield from _parse_kiro_chat(item.value, names)
        else:
            yield note_unread_value(item.row, item.value, "no line of a session")
    yield from _parse_kiro_lines(source, lines)
    yield from _parse_kiro_records(source, written)


def _parse_kiro_chat(chat: JsonFields, names: SessionNames) -> Iterator[Event]:
    told = get_list(chat["history"])
    known = [turn for turn in told if is_kiro_turn(turn)]
    made = (parse_kiro_turn(turn, place) for place, turn in enumerate(known, 1))
    said = list(chain.from_iterable(made))
    if not said:
        return
    kept, notes = split_metadata(drop_empty_fields(drop_keys(chat, *KIRO_CHAT_KEYS)))
    info = get_fields(chat.get("model_info"))
    models = map(info.get, ("model_id", "model_name"))
    model = find_first_text((*models, chat.get("model")))
    metadata = drop_empty_fields({"model": model, "kiro": kept})
    created = chat.get("created_at")
    opened = SessionEvent(
        names.name(get_text(chat.get("conversation_id"))),
        find_title(said),
        _find_kiro_folder(chat, known),
        metadata,
        created_at=created if type(created) is int and created > 10**12 else None,
    )
    yield opened
    yield from map(SessionMessage, said)
    if len(known) < len(told):
        unread = note_omission(len(told) - len(known), "turn", " that cannot be read")
        yield unread._replace(broken=True)
    yield from notes


def _find_kiro_folder(chat: JsonFields, known: list[JsonFields]) -> str | None:
    """Return the folder of a chat: from the database, else from its last turn."""
    folders = (get_nested(turn, *KIRO_FOLDER_PATH) for turn in known[::-1])
    return find_first_text((chat.get("cwd"), *folders))


def _parse_kiro_lines(source: TranscriptSource, lines: list[JsonFields]) -> Iterator[Event]:
    """Yield the session of a file, with the metadata from the file next to it."""
    told = [line for line in lines if is_kiro_message(line)]
    said = list(chain.from_iterable(map(parse_kiro_line, told)))
    if not said:
        return
    beside = _read_kiro_metadata(source.path.with_suffix(".json"))
    titles = render_titles((beside.get("title"), find_title(said)))
    kept, notes = split_metadata(drop_empty_fields(drop_keys(beside, *KIRO_SIDECAR_KEYS)))
    name = get_text(beside.get("session_id")) or source.stem
    root = get_text(beside.get("cwd"))
    metadata = drop_empty_fields({"kiro": kept})
    yield SessionEvent(name, find_first_text(titles), root, metadata, titles=titles)
    yield from map(SessionMessage, said)
    others = (line for line in lines if not is_kiro_message(line))
    unsaid = Counter((str(line["kind"]), "") for line in others)
    yield from list_omission_notes(unsaid, "line")
    yield from notes


class _KiroSession:
    """Follow the messages of a folder's records: each message, and the one that it follows."""

    def __init__(self) -> None:
        self.said: dict[str, Message] = {}
        self.parents: dict[str, str | None] = {}
        self.last: str | None = None
        self._summaries: list[tuple[str | None, str]] = []

    def take(self, written: list[JsonFields]) -> None:
        """Take records, which may take back messages or replace all messages before them."""
        kept: list[JsonFields] = []
        for record in written:
            begun = records.find_rewind_start(record)
            is_said = begun is None and not records.is_kiro_summary(record)
            if is_said:
                kept.append(record)
                continue
            self._say(kept)
            kept = []
            if begun is None:
                self._summaries.append((self.last, records.join_record_texts(record)))
            else:
                self.last = self.parents.get(begun, self.last)
        self._say(kept)

    def _say(self, kept: list[JsonFields]) -> None:
        for message in records.parse_kiro_record_messages(kept):
            name = self._name(get_text(message.get("id")))
            self.said[name], self.parents[name] = message, self.last
            self.last = name

    def _name(self, told: str | None) -> str:
        """Return an unused name for a message: its id, else one with its number."""
        name = told
        if name is None or name in self.said:
            name = f"{told or 'message'}-{len(self.said) + 1}"
        while name in self.said:
            name += "+"
        return name

    def present(self) -> list[str]:
        """Return the names of the messages that no record took back."""
        return list(list_ancestors(self.parents, self.last))[::-1]

    def compactions(self) -> dict[int, CompactionEvent]:
        """Return each summary, by the number of present messages that it replaces."""
        places = {name: place for place, name in enumerate(self.present(), 1)}
        counts = ((places.get(name or ""), summary) for name, summary in self._summaries)
        return {
            count: CompactionEvent(count, summary or None) for count, summary in counts if count
        }


def _parse_kiro_records(source: TranscriptSource, written: list[JsonFields]) -> Iterator[Event]:
    """Yield the session of a folder's records, with the metadata from the file next to them.

    Messages that were taken back are a branch.
    """
    folder = source.path.absolute().parent
    folder = folder.parent if folder.name == SUB_EXECUTIONS_FOLDER else folder
    beside = _read_kiro_metadata(folder / KIRO_METADATA_FILE)
    name, call = get_text(beside.get("id")) or folder.name, None
    line = _KiroSession()
    agent = load_sub_execution(source.path.absolute(), name, source.limits) if written else None
    if agent:
        line.take(agent.asked)
        shared = {key: beside.get(key) for key in KIRO_SHARED_KEYS}
        name, call, beside = agent.name, agent.call, drop_empty_fields(shared | agent.told)
    line.take(written)
    if not line.said:
        return
    said = [line.said[each] for each in line.present()]
    opened, notes = _build_kiro_opening(name, beside, said, call)
    tree = Tree(line.parents, line.last, lambda each: [line.said[each]])
    yield from insert_compactions(build_tree_events(tree, opened), line.compactions())
    states = (
        record
        for record in written
        if records.find_record_type(record) not in records.KIRO_MESSAGE_TYPES
    )
    yield from list_omission_notes(
        Counter((str(records.find_record_type(each)), "") for each in states), "record"
    )
    yield from notes


def _build_kiro_opening(
    name: str, beside: JsonFields, said: list[Message], call: str | None
) -> tuple[SessionEvent, list[NoteEvent]]:
    kept, notes = split_metadata(drop_empty_fields(drop_keys(beside, *KIRO_METADATA_KEYS)))
    root = find_first_text(map(beside.get, KIRO_PARENT_KEYS))
    parent = root if root != name else None
    told = {
        "model": beside.get("modelId"),
        "parent_session": parent,
        "parent_call": call,
        "kiro": kept,
    }
    titles = render_titles((beside.get("title"), find_title(said)))
    opened = SessionEvent(
        name,
        find_first_text(titles),
        find_first_text(get_list(beside.get("workspacePaths"))),
        drop_empty_fields(told),
        titles=titles,
        created_at=parse_iso_milliseconds(beside.get("createdAt")),
    )
    return opened, notes


def _read_kiro_metadata(path: Path) -> JsonFields:
    """Return the metadata from the file next to a session; empty if there is no such file."""
    with suppress(OSError, ValueError, RecursionError):
        return get_fields(json.loads(path.read_bytes()))
    return {}
