"""Exports of claude.ai: conversations of ``chat_messages``, which may tell what each one follows.

A conversation is a session; answers that were made anew, and edited questions, are branches of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..events import (
    Event,
    Noted,
    Opened,
    SessionNames,
    fields_of,
    list_of,
    sketch,
    split_metadata,
    telling,
    text_of,
    title_in,
    without,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Parents, Tree, parents_of, tree_events
from .messages import is_message, messages_of

KNOWN = ("uuid", "name", "model", "chat_messages", "current_leaf_message_uuid")
"""Keys of a conversation that say what its session says."""

PARENT = "parent_message_uuid"

Named = dict[str, Fields]
"""The messages of a conversation, each under its id."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation, or a list of them, with words in it."""
    return any(is_message(each) for item in as_list(value) for each in _listed(item))


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each conversation, its branches after it."""
    return conversations(source, _is_one, "conversation: it has no list 'chat_messages'", _session)


def _is_one(value: Any) -> bool:
    return isinstance(fields_of(value).get("chat_messages"), list)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    name = names.name(text_of(fields.get("uuid")))
    known = telling(without(fields, *KNOWN))
    kept, notes = split_metadata(known)
    model = text_of(fields.get("model"))
    metadata = {"model": model, "claude_ai": kept} if model else {"claude_ai": kept}
    title = title_in([fields.get("name")])
    opened = Opened(name, title, None, metadata)
    yield from _unread(fields, opened.session_id)
    yield from tree_events(_tree(fields), opened)
    yield from notes


def _unread(fields: Fields, name: str) -> Iterator[Noted]:
    """Yield a note for each message that cannot be read."""
    for number, value in enumerate(_listed(fields), 1):
        if not is_message(value):
            text = f"message {number} of {name} cannot be read: this is {sketch(value)}"
            yield Noted(None, text, broken=True)


def _tree(fields: Fields) -> Tree:
    """Return a conversation's messages as a tree: a single line if no message names its parent."""
    readable = filter(is_message, _listed(fields))
    numbered = enumerate(readable, 1)
    messages = {text_of(each.get("uuid")) or f"message-{number}": each for number, each in numbered}

    def said(name: str) -> list[Message]:
        return messages_of(name, messages[name])

    return Tree(_parents(messages), text_of(fields.get("current_leaf_message_uuid")), said)


def _parents(messages: Named) -> Parents:
    if any(PARENT in message for message in messages.values()):
        return parents_of(messages, PARENT)
    first = dict.fromkeys(list(messages)[:1])
    return first | {after: before for before, after in pairwise(messages)}


def _listed(value: object) -> list[Any]:
    return list_of(fields_of(value).get("chat_messages"))
