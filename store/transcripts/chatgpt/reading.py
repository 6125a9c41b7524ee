"""Exports of ChatGPT: conversations that are trees of nodes (``mapping``), one of them present.

Each node that says something is a message. A conversation is a session; answers that were made
anew, and questions that were asked anew, are branches of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..events import (
    Event,
    Opened,
    SessionNames,
    fields_of,
    first_text,
    split_metadata,
    telling,
    text_of,
    title_in,
    without,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Parents, Tree, ancestors, parents_of, tree_events
from .nodes import is_node, message_of

IDS = ("conversation_id", "id")

KNOWN = ("title", "mapping", "current_node")
"""Keys of a conversation that say what its session says."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation, or a list of them, with words in it."""
    nodes = (node for each in as_list(value) for node in _nodes(each).values())
    return any(map(is_node, nodes))


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each conversation, its branches after it."""
    return conversations(source, _nodes, "conversation: it has no 'mapping' of nodes", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    nodes = _nodes(fields)
    parents, current = parents_of(nodes, "parent"), text_of(fields.get("current_node"))
    tree = Tree(parents, current, partial(_said, nodes, parents))
    name = names.name(first_text(map(fields.get, IDS)))
    known = telling(without(fields, *KNOWN))
    kept, notes = split_metadata(known)
    model = text_of(fields.get("default_model_slug"))
    metadata = {"model": model, "chatgpt": kept} if model else {"chatgpt": kept}
    title = title_in([fields.get("title")])
    opened = Opened(name, title, None, metadata)
    yield from tree_events(tree, opened)
    yield from notes


def _said(nodes: Fields, parents: Parents, name: str) -> list[Message]:
    """Return a node's message, a result with the call above it that it answers."""
    above = islice(ancestors(parents, name), 1, None)
    message = message_of(name, nodes[name], ((each, nodes[each]) for each in above))
    return [message] if message else []


def _nodes(value: object) -> Fields:
    return fields_of(fields_of(value).get("mapping"))
