"""Exports of claude.ai: conversations of ``chat_messages``, which may tell what each one follows.

A conversation is a session; answers that were made anew, and edited questions, are branches of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ...messages import Message
from ...text import JsonFields, wrap_in_list
from ..events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    render_first_title,
    render_sketch,
    split_metadata,
)
from ..several import parse_conversations
from ..source import SourceValue, TranscriptSource
from ..trees import Parents, Tree, build_tree_events, find_node_parents
from .messages import is_claude_ai_message, parse_claude_ai_message

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


def parse_claude_ai(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each conversation, its branches after it."""
    return parse_conversations(
        source,
        _is_claude_ai_conversation,
        "conversation: it has no list 'chat_messages'",
        _parse_claude_ai_session,
    )


def _is_claude_ai_conversation(value: Any) -> bool:
    return isinstance(get_fields(value).get("chat_messages"), list)


def _parse_claude_ai_session(item: SourceValue, names: SessionNames) -> Iterator[Event]:
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

    def said(name: str) -> list[Message]:
        return parse_claude_ai_message(name, messages[name])

    yield from build_tree_events(
        Tree(
            _find_message_parents(messages), get_text(fields.get("current_leaf_message_uuid")), said
        ),
        opened,
    )
    yield from notes


def _find_message_parents(messages: MessagesById) -> Parents:
    if any(PARENT_MESSAGE_KEY in message for message in messages.values()):
        return find_node_parents(messages, PARENT_MESSAGE_KEY)
    first = dict.fromkeys(list(messages)[:1])
    return first | {after: before for before, after in pairwise(messages)}


def _list_claude_ai_messages(value: object) -> list[Any]:
    return get_list(get_fields(value).get("chat_messages"))
