"""Sessions of pi."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ..records import Message
from ..text import JsonFields
from .disk_buffer import BufferedMapping, DiskBuffer
from .parser_events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_text,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
    render_titles,
    simplify_content,
    split_metadata,
)
from .source import TranscriptSource
from .trees import Tree, build_tree_events, insert_compactions, list_ancestors

__all__ = ["is_pi_header", "parse_pi"]

PI_ROLES = {"user": "user", "custom": "user", "assistant": "assistant", "toolResult": "tool"}
"""Role of a message → role in the chat; the user's own commands and summaries are texts."""

PI_TEXT_KEYS = {
    "branchSummary": "summary",
    "compactionSummary": "summary",
    "bashExecution": "output",
}
"""Role of a message that is a text → the key of the text."""

_PI_MESSAGE_KEYS = ("role", "content", "timestamp", "toolCallId", "toolName", "isError")


def find_entry_message(entry: JsonFields) -> JsonFields:
    """Return the message of an entry, {} for an entry that was not sent to a model."""
    if entry.get("type") == "message":
        return get_fields(entry.get("message"))
    if entry.get("type") == "branch_summary":
        return {"role": "branchSummary", "summary": entry.get("summary")}
    if entry.get("type") == "custom_message":
        return {"role": "custom", **drop_keys(entry, "type", "id", "parentId", "timestamp")}
    return {}


def is_message_entry(entry: JsonFields) -> bool:
    """Tell whether an entry is a message that can be read."""
    told = find_entry_message(entry)
    role = get_text(told.get("role"))
    return (role in PI_ROLES and "content" in told) or (
        role in PI_TEXT_KEYS and told.get("excludeFromContext") is not True
    )


def parse_pi_message(entry: JsonFields) -> Message:
    """Return the message of an entry, without its id and time."""
    told = find_entry_message(entry)
    if told["role"] in PI_TEXT_KEYS:
        key = PI_TEXT_KEYS[told["role"]]
        text = get_text(told.get(key)) or ""
        command = get_text(told.get("command"))
        said = f"Ran `{command}`\n{text}" if command else text
        return {
            "role": "user",
            "content": said,
            "pi": drop_empty_fields(drop_keys(told, key, "timestamp")),
        }
    blocks = _parse_pi_blocks(told.get("content"))
    content = simplify_content(
        [
            _parse_pi_part(block)
            for block in blocks
            if block.get("type") not in ("thinking", "toolCall")
        ]
    )
    message = {"role": PI_ROLES[told["role"]], "content": content} | _parse_calls_and_thoughts(
        told, blocks
    )
    if message["role"] != "assistant":
        message["content"] = content or ""
    extra = drop_empty_fields(drop_keys(told, *_PI_MESSAGE_KEYS)) | drop_empty_fields(
        {"signatures": list(filter(None, map(_find_thought_signature, blocks)))}
    )
    return message | drop_empty_fields({"pi": extra})


def _parse_calls_and_thoughts(told: JsonFields, blocks: list[JsonFields]) -> JsonFields:
    """Return a message's calls and thoughts, or the call that it answers."""
    thoughts = [block for block in blocks if block.get("type") == "thinking"]
    calls = [block for block in blocks if block.get("type") == "toolCall"]
    more = {
        "tool_calls": list(map(_parse_pi_call, calls)),
        "tool_call_id": get_text(told.get("toolCallId")),
        "name": get_text(told.get("toolName")),
        "messageStatus": "error" if told.get("isError") is True else None,
    }
    return drop_empty_fields(more | _parse_pi_thoughts(told, thoughts))


def _parse_pi_thoughts(told: JsonFields, thoughts: list[JsonFields]) -> JsonFields:
    """Return thoughts: as Anthropic's blocks if they are signed, else as text."""
    if told.get("api") == "anthropic-messages" and all(map(_find_thought_signature, thoughts)):
        return {"thinking_blocks": list(map(_build_thinking_block, thoughts))}
    texts = (get_text(block.get("thinking")) for block in thoughts)
    return {"reasoning_content": "\n\n".join(filter(None, texts))}


def _find_thought_signature(block: JsonFields) -> str | None:
    return get_text(block.get("thinkingSignature"))


def _build_thinking_block(block: JsonFields) -> JsonFields:
    thought = get_text(block.get("thinking")) or ""
    return {"type": "thinking", "thinking": thought, "signature": _find_thought_signature(block)}


def _parse_pi_call(block: JsonFields) -> JsonFields:
    arguments = json.dumps(block.get("arguments") or {}, ensure_ascii=False)
    function = {"name": get_text(block.get("name")) or "", "arguments": arguments}
    return {"id": get_text(block.get("id")) or "", "type": "function", "function": function}


def _parse_pi_blocks(content: Any) -> list[JsonFields]:
    """Return a content as blocks: a text, or a list of them."""
    if isinstance(content, str):
        return [build_text_part(content)] if content else []
    return list(filter(None, map(get_fields, get_list(content))))


def _parse_pi_part(block: JsonFields) -> JsonFields:
    """Return a block as a part of the content: a text, a picture as ``image_url``."""
    match block:
        case {"type": "text", "text": str(text)}:
            return build_text_part(text)
        case {"type": "image", "mimeType": str(kind), "data": str(data)}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    return block


HEAD, COMPACTION, NAMED = "session", "compaction", "session_info"
PI_ENTRY_TYPES = (HEAD, COMPACTION, NAMED)
"""Types of entries that are read although they are not messages."""


def is_pi_header(value: Any) -> bool:
    """Tell whether a JSON value is the head of a session."""
    fields = get_fields(value)
    return fields.get("type") == HEAD and {"id", "cwd", "timestamp"} <= fields.keys()


def parse_pi(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches, then the notes."""
    with DiskBuffer() as buffer:
        chat = _PiSession({"id": source.stem}, buffer)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
            elif is_pi_header(item.value):
                yield from chat.events()
                chat = _PiSession(item.value, buffer)
            elif get_text(get_fields(item.value).get("type")):
                chat.take(item.value)
            else:
                yield note_unread_value(item.row, item.value, "no entry of a session")
        yield from chat.events()


class _PiSession:
    """A session: its head, its entries by id, and the entry before each of them."""

    def __init__(self, head: JsonFields, buffer: DiskBuffer) -> None:
        self._head = head
        self._entries = BufferedMapping(buffer)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None

    def take(self, entry: JsonFields) -> None:
        """Take the next entry; an entry that names no other follows the one before it."""
        name = get_text(entry.get("id")) or f"entry-{len(self._entries) + 1}"
        told = entry.get("parentId", self._last)
        parent = get_text(told)
        is_known = told is None or parent in self._parents
        self._parents[name] = parent if is_known else self._last
        self._entries[name] = entry
        self._last = name

    def events(self) -> Iterator[Event]:
        """Return the session, its branches, and the notes."""
        if not self._entries:
            return
        path = list(list_ancestors(self._parents, self._last))[::-1]
        opened, notes = self._opened(path)
        tree = Tree(self._parents, self._last, self._messages_of)
        yield from insert_compactions(
            build_tree_events(tree, opened), dict(self._compactions(path))
        )
        left = (entry for entry in self._entries.values() if not is_message_entry(entry))
        kinds = (str(entry["type"]) for entry in left)
        unsaid = Counter((kind, "") for kind in kinds if kind not in PI_ENTRY_TYPES)
        yield from list_omission_notes(unsaid, "entry")
        yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        entry = self._entries[name]
        if not is_message_entry(entry):
            return []
        return [parse_pi_message(entry) | {"id": name} | _parse_pi_timestamp(entry)]

    def _opened(self, path: list[str]) -> tuple[SessionEvent, list[NoteEvent]]:
        said = (message for name in path for message in self._messages_of(name))
        named = self._from_the_last(path)
        names = (entry.get("name") for entry in named if entry["type"] == NAMED)
        titles = render_titles((*names, self._head.get("title"), find_title(said)))
        kept, notes = split_metadata(drop_empty_fields(drop_keys(self._head, "type", "id", "cwd")))
        models = (find_entry_message(entry).get("model") for entry in self._from_the_last(path))
        model = find_first_text(chain(models, [self._head.get("modelId")]))
        metadata = drop_empty_fields({"model": model}) | {"pi": kept}
        root = get_text(self._head.get("cwd"))
        title = find_first_text(titles)
        return SessionEvent(str(self._head["id"]), title, root, metadata, titles=titles), notes

    def _from_the_last(self, path: list[str]) -> Iterator[JsonFields]:
        return map(self._entries.__getitem__, reversed(path))

    def _compactions(self, path: list[str]) -> Iterator[tuple[int, CompactionEvent]]:
        """Yield the compactions of a path, each with the number of messages before it."""
        before: dict[str, int] = {}
        count = 0
        for name in path:
            before[name] = count
            entry = self._entries[name]
            count += is_message_entry(entry)
            summary = get_text(entry.get("summary"))
            kept = before.get(str(entry.get("firstKeptEntryId")), count)
            if entry["type"] == COMPACTION and summary and kept:
                yield count, CompactionEvent(kept, summary)


def _parse_pi_timestamp(entry: JsonFields) -> JsonFields:
    """Return the time of a message in ms; empty if it has none."""
    told = find_entry_message(entry).get("timestamp")
    moment = told if type(told) is int else parse_iso_milliseconds(entry.get("timestamp"))
    return {} if moment is None else {"timestamp": moment}
