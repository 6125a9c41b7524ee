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
from ...text import JsonFields, wrap_in_list
from ..events import (
    Event,
    SessionEvent,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_text,
    render_first_title,
    split_metadata,
)
from ..several import parse_conversations
from ..source import SourceValue, TranscriptSource
from ..trees import Parents, Tree, build_tree_events, find_node_parents, list_ancestors
from .nodes import is_speaking_node, parse_chatgpt_node

CHATGPT_ID_KEYS = ("conversation_id", "id")

CHATGPT_SESSION_KEYS = ("title", "mapping", "current_node")
"""Keys of a conversation that say what its session says."""


def has_chatgpt_nodes(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation, or a list of them, with words in it."""
    nodes = (node for each in wrap_in_list(value) for node in _find_chatgpt_nodes(each).values())
    return any(map(is_speaking_node, nodes))


def parse_chatgpt(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each conversation, its branches after it."""
    return parse_conversations(
        source,
        _find_chatgpt_nodes,
        "conversation: it has no 'mapping' of nodes",
        _parse_chatgpt_session,
    )


def _parse_chatgpt_session(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    fields = get_fields(item.value)
    nodes = _find_chatgpt_nodes(fields)
    parents, current = find_node_parents(nodes, "parent"), get_text(fields.get("current_node"))
    tree = Tree(parents, current, partial(_list_node_messages, nodes, parents))
    name = names.name(find_first_text(map(fields.get, CHATGPT_ID_KEYS)))
    known = drop_empty_fields(drop_keys(fields, *CHATGPT_SESSION_KEYS))
    kept, notes = split_metadata(known)
    model = get_text(fields.get("default_model_slug"))
    metadata = {"model": model, "chatgpt": kept} if model else {"chatgpt": kept}
    title = render_first_title([fields.get("title")])
    opened = SessionEvent(name, title, None, metadata)
    yield from build_tree_events(tree, opened)
    yield from notes


def _list_node_messages(nodes: JsonFields, parents: Parents, name: str) -> list[Message]:
    """Return a node's message, a result with the call above it that it answers."""
    above = islice(list_ancestors(parents, name), 1, None)
    message = parse_chatgpt_node(name, nodes[name], ((each, nodes[each]) for each in above))
    return [message] if message else []


def _find_chatgpt_nodes(value: object) -> JsonFields:
    return get_fields(get_fields(value).get("mapping"))
