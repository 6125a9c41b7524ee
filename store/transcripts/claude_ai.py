"""Exports of claude.ai."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..records import Message
from ..text import JsonFields, wrap_in_list
from .blocks import ContentBlock, build_answer_messages
from .parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionNames,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    parse_iso_milliseconds,
    render_first_title,
    render_sketch,
    simplify_content,
    split_metadata,
)
from .source import SourceValue, for_each_conversation
from .trees import Tree, build_tree_events, find_or_chain_parents

__all__ = ["has_claude_ai_messages", "parse_claude_ai"]

ROLE_BY_SENDER = {"human": "user", "assistant": "assistant"}

API_BLOCK_KEYS = {
    "text": ("type", "text"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input"),
    "tool_result": ("type", "tool_use_id", "content", "is_error"),
}
"""Type of a block → its keys that the API knows; blocks of other types stay as they are."""

_SENT_MESSAGE_KEYS = ("uuid", "sender", "text", "content", "created_at", "parent_message_uuid")


def is_claude_ai_message(value: object) -> bool:
    """Tell whether a message can be read: who said it, and what."""
    fields = get_fields(value)
    is_named = get_text(fields.get("sender")) in ROLE_BY_SENDER
    return is_named and not fields.keys().isdisjoint({"text", "content"})


def parse_claude_ai_message(name: str, fields: JsonFields) -> list[Message]:
    """Return the messages that one of claude.ai makes; the first has its id."""
    blocks = [each for each in get_list(fields.get("content")) if isinstance(each, dict)]
    text = get_text(fields.get("text"))
    blocks = [build_text_part(text)] if text and not blocks else blocks
    sent = [
        {key: block[key] for key in _list_api_keys(block) if block.get(key) is not None}
        for block in blocks
    ]
    known = _link_calls_and_results(name, sent)
    messages: list[Message]
    if fields["sender"] == "human":
        read = [each.get("extracted_content") for each in _list_attachments(fields)]
        parts = [*known, *map(build_text_part, filter(None, map(get_text, read)))]
        messages = [{"role": "user", "content": simplify_content(parts) or ""}]
    else:
        messages = build_answer_messages(known) or [{"role": "assistant", "content": None}]
    created = parse_iso_milliseconds(fields.get("created_at"))
    moment = {} if created is None else {"timestamp": created}
    for number, message in enumerate(messages, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
        message.update(moment)
    messages[0]["claude_ai"] = _collect_claude_ai_extra(fields, blocks)
    return messages


def _list_api_keys(block: ContentBlock) -> tuple[str, ...]:
    kind = get_text(block.get("type"))
    return API_BLOCK_KEYS.get(kind or "", tuple(block))


def _link_calls_and_results(name: str, blocks: list[ContentBlock]) -> list[ContentBlock]:
    """Name calls that have no id, and let results without one answer the first open call."""
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    for number, call in enumerate(calls, 1):
        call.setdefault("id", f"{name}-call-{number}")
    answered = {block.get("tool_use_id") for block in blocks}
    waiting = (call["id"] for call in calls if call["id"] not in answered)
    results = (block for block in blocks if block.get("type") == "tool_result")
    for result in results:
        if "tool_use_id" not in result:
            result["tool_use_id"] = next(waiting, None)
    return blocks


def _collect_claude_ai_extra(fields: JsonFields, blocks: list[ContentBlock]) -> JsonFields:
    """Return the fields of a message, its attachments and its blocks that have no other place."""
    extra = drop_keys(fields, *_SENT_MESSAGE_KEYS)
    extra["attachments"] = [
        drop_keys(each, "extracted_content") for each in _list_attachments(fields)
    ]
    beside = [drop_empty_fields(drop_keys(block, *_list_api_keys(block))) for block in blocks]
    extra["blocks"] = beside if any(beside) else []
    return drop_empty_fields(extra)


def _list_attachments(fields: JsonFields) -> list[Any]:
    return [get_fields(each) for each in get_list(fields.get("attachments"))]


CLAUDE_AI_SESSION_KEYS = ("uuid", "name", "model", "chat_messages", "current_leaf_message_uuid")
"""Keys of a conversation that say what its session says."""

PARENT_MESSAGE_KEY = "parent_message_uuid"

MessagesById = dict[str, JsonFields]
"""The messages of a conversation, each under its id."""


def has_claude_ai_messages(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation, or a list of them, with words in it."""
    return any(
        is_claude_ai_message(each)
        for item in wrap_in_list(value)
        for each in _list_claude_ai_messages(item)
    )


def _is_claude_ai_conversation(value: Any) -> bool:
    return isinstance(get_fields(value).get("chat_messages"), list)


@for_each_conversation(_is_claude_ai_conversation, "conversation: it has no list 'chat_messages'")
def parse_claude_ai(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a conversation, its branches after it."""
    fields = get_fields(item.value)
    name = names.name(get_text(fields.get("uuid")))
    known = drop_empty_fields(drop_keys(fields, *CLAUDE_AI_SESSION_KEYS))
    kept, notes = split_metadata(known)
    model = get_text(fields.get("model"))
    metadata = {"model": model, "claude_ai": kept} if model else {"claude_ai": kept}
    title = render_first_title([fields.get("name")])
    opened = SessionEvent(name, title, None, metadata)
    for number, value in enumerate(_list_claude_ai_messages(fields), 1):
        if not is_claude_ai_message(value):
            place = f"message {number} of {opened.session_id}"
            text = f"{place} cannot be read: this is {render_sketch(value)}"
            yield NoteEvent(None, text, broken=True)
    readable = filter(is_claude_ai_message, _list_claude_ai_messages(fields))
    numbered = enumerate(readable, 1)
    messages = {
        get_text(each.get("uuid")) or f"message-{number}": each for number, each in numbered
    }
    tree = Tree(
        find_or_chain_parents(messages, PARENT_MESSAGE_KEY),
        get_text(fields.get("current_leaf_message_uuid")),
        lambda name: parse_claude_ai_message(name, messages[name]),
    )
    yield from build_tree_events(tree, opened)
    yield from notes


def _list_claude_ai_messages(value: object) -> list[Any]:
    return get_list(get_fields(value).get("chat_messages"))
