"""Conversations that are trees: the present path is a session, what leaves it are branches of it.

A tree is told by the parent of each node. Where a question was asked or answered anew, several
nodes have the same parent; one leaf is the present one. Nothing here knows what a node says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from ..messages import Message
from ..text import Fields, counted
from .events import Compacted, Event, Noted, Opened, Said, Stem, fields_of, text_of, title_of

Parents = Mapping[str, str | None]
"""The id of each node's parent; one that is no node's id is none."""


Compactions = Mapping[int, Compacted]
"""The compactions of a session, each under how many of its messages come before it."""


class Tree(NamedTuple):
    """A conversation: its nodes in their order, the present leaf, and the messages of a node.

    ``current`` None, or no node's id, means the last node.
    """

    parents: Parents
    current: str | None
    said: Callable[[str], list[Message]]


def tree_events(tree: Tree, opened: Opened) -> Iterator[Event]:
    """Return the session of a tree's present path, then each branch that leaves it."""
    homes: dict[str | None, tuple[str, int]] = {}
    begun = False
    for path in _paths(tree):
        home, position = homes.get(tree.parents[path[0]], (opened.session_id, 0))
        messages = [tree.said(node) for node in path]
        own = list(chain.from_iterable(messages))
        session = _branch(opened, home, position, path[0], own) if begun else opened
        if own:
            home = session.session_id
            yield from _session_events(session, own, is_branch=begun)
            begun = True
        for node, said in zip(path, messages, strict=True):
            position += len(said)
            homes[node] = home, position


def _session_events(session: Opened, own: list[Message], *, is_branch: bool) -> Iterator[Event]:
    yield session
    yield from map(Said, own)
    if is_branch:
        count = counted(len(own), "message")
        yield Noted(None, f"{count} off the present path: session {session.session_id!r}")


def parents_of(nodes: Mapping[str, object], key: str) -> Parents:
    """Return the parent that each node of a conversation tells under a key."""
    return {name: text_of(fields_of(node).get(key)) for name, node in nodes.items()}


def with_compactions(events: Iterable[Event], found: Compactions) -> Iterator[Event]:
    """Yield events, and the compactions behind the messages of the first session."""
    sessions = count = 0
    for event in events:
        yield event
        sessions += isinstance(event, Opened)
        count += isinstance(event, Said)
        if sessions == 1 and isinstance(event, Said) and count in found:
            yield found[count]


def ancestors(parents: Parents, node: str | None) -> Iterator[str]:
    """Yield a node and those above it; each once, also where they go round in a circle."""
    seen: set[str] = set()
    while node is not None and node in parents and node not in seen:
        seen.add(node)
        yield node
        node = parents[node]


def _paths(tree: Tree) -> Iterator[list[str]]:
    """Yield the present path, then for each other leaf what of its path no earlier one has."""
    walked: set[str] = set()
    for leaf in _leaves(tree):
        path = []
        for node in ancestors(tree.parents, leaf):
            if node in walked:
                break
            path.append(node)
        walked.update(path)
        if path:
            yield path[::-1]


def _leaves(tree: Tree) -> list[str]:
    """Return the present leaf, then all others; none of an empty tree."""
    if not tree.parents:
        return []
    above = set(tree.parents.values())
    leaves = [node for node in tree.parents if node not in above]
    if not leaves:
        leaves = list(tree.parents)[-1:]
    current = tree.current if tree.current in tree.parents else None
    return [current or leaves[-1], *leaves]


def _branch(opened: Opened, home: str, position: int, first: str, own: list[Message]) -> Opened:
    """Return the session of a branch, named after its first node, whatever grows on it."""
    link: Fields = {"parent_session": home, "forked_at": position}
    name = f"{opened.session_id}/branch-{first}"
    stem = Stem(home, position)
    return Opened(name, title_of(own), opened.project_root, link, stem=stem)
