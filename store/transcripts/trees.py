"""Conversations that are trees: the present path is a session, what leaves it are branches of it.

A tree is told by the parent of each node. Where a question was asked or answered anew, several
nodes have the same parent; one leaf is the present one. Nothing here knows what a node says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, pairwise
from typing import NamedTuple

from ..records import Message
from ..text import JsonFields, format_count
from .parser_events import (
    CompactionEvent,
    Event,
    ForkPoint,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    find_title,
    get_fields,
    get_text,
)

Parents = Mapping[str, str | None]
"""The id of each node's parent; one that is no node's id is none."""


Compactions = Mapping[int, CompactionEvent]
"""The compactions of a session, each under how many of its messages come before it."""


class Tree(NamedTuple):
    """A conversation: its nodes in their order, the present leaf, and the messages of a node.

    ``current`` None, or no node's id, means the last node.
    """

    parents: Parents
    current: str | None
    said: Callable[[str], list[Message]]


def build_tree_events(tree: Tree, opened: SessionEvent) -> Iterator[Event]:
    """Return the session of a tree's present path, then each branch that leaves it."""
    homes: dict[str | None, tuple[str, int]] = {}
    begun = False
    for path in _list_tree_paths(tree):
        home, position = homes.get(tree.parents[path[0]], (opened.session_id, 0))
        counts = [len(tree.said(node)) for node in path]
        if any(counts):
            session = opened
            if begun:  # a branch is named after its first node, whatever grows on it
                stem = ForkPoint(home, position)
                link: JsonFields = {"parent_session": home, "forked_at": position}
                name = f"{opened.session_id}/branch-{path[0]}"
                title = find_title(_list_path_messages(tree, path))
                session = SessionEvent(name, title, opened.project_root, link, stem=stem)
            home = session.session_id
            yield session
            yield from map(SessionMessage, _list_path_messages(tree, path))
        if any(counts) and begun:
            messages = format_count(sum(counts), "message")
            yield NoteEvent(None, f"{messages} off the present path: session {home!r}")
        begun = begun or any(counts)
        for node, count in zip(path, counts, strict=True):
            position += count
            homes[node] = home, position


def _list_path_messages(tree: Tree, path: list[str]) -> Iterator[Message]:
    """Yield the messages of a path as they are read."""
    return chain.from_iterable(map(tree.said, path))


def find_node_parents(nodes: Mapping[str, object], key: str) -> Parents:
    """Return the parent that each node of a conversation tells under a key."""
    return {name: get_text(get_fields(node).get(key)) for name, node in nodes.items()}


def find_or_chain_parents(nodes: Mapping[str, object], key: str) -> Parents:
    """Return the parent that each node tells under a key; if none does, the node before it."""
    if any(key in get_fields(node) for node in nodes.values()):
        return find_node_parents(nodes, key)
    first: dict[str, str | None] = dict.fromkeys(list(nodes)[:1])
    return first | {after: before for before, after in pairwise(nodes)}


def insert_compactions(events: Iterable[Event], found: Compactions) -> Iterator[Event]:
    """Yield events, and the compactions after the messages of the first session."""
    sessions = count = 0
    for event in events:
        yield event
        sessions += isinstance(event, SessionEvent)
        count += isinstance(event, SessionMessage)
        if sessions == 1 and isinstance(event, SessionMessage) and count in found:
            yield found[count]


def list_ancestors(parents: Parents, node: str | None) -> Iterator[str]:
    """Yield a node and those above it; each once, also where they go round in a circle."""
    seen: set[str] = set()
    while node is not None and node in parents and node not in seen:
        seen.add(node)
        yield node
        node = parents[node]


def _list_tree_paths(tree: Tree) -> Iterator[list[str]]:
    """Yield the present path, then for each other leaf what of its path no earlier one has."""
    walked: set[str] = set()
    if not tree.parents:
        return
    above = set(tree.parents.values())
    leaves = [node for node in tree.parents if node not in above] or list(tree.parents)[-1:]
    current = tree.current if tree.current in tree.parents else None
    for leaf in [current or leaves[-1], *leaves]:
        path = []
        for node in list_ancestors(tree.parents, leaf):
            if node in walked:
                break
            path.append(node)
        walked.update(path)
        if path:
            yield path[::-1]
