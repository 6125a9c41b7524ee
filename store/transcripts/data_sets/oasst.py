"""Message trees of OpenAssistant: a prompt, and replies to replies, the best of each first.

The path of the best replies is the session; every other one is a branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..events import (
    Event,
    Opened,
    SessionNames,
    fields_of,
    iso_milliseconds,
    list_of,
    split_metadata,
    telling,
    text_of,
    title_of,
    without,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Tree, tree_events

ROLES = {"prompter": "user", "assistant": "assistant"}

_SAID = ("message_id", "parent_id", "text", "role", "replies", "created_date")

Replies = dict[str, Fields]
"""The messages of a tree, each under its id."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a tree, or a list of them."""
    return any(map(_is_tree, as_list(value)))


def _is_tree(value: Any) -> bool:
    fields = fields_of(value)
    return "message_tree_id" in fields and _is_reply(fields.get("prompt"))


def _is_reply(value: Any) -> bool:
    fields = fields_of(value)
    named = text_of(fields.get("role")) in ROLES and bool(text_of(fields.get("message_id")))
    return named and isinstance(fields.get("text"), str)


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each tree, its branches after it."""
    return conversations(source, _is_tree, "tree of messages", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    replies: Replies = {}
    parents: dict[str, str | None] = {}
    present = _walk(item.value["prompt"], replies, parents)
    metadata, notes = split_metadata(without(item.value, "prompt", "message_tree_id"))
    name = names.name(str(item.value["message_tree_id"]))
    title = title_of([_message(item.value["prompt"])])
    tree = Tree(parents, present, lambda reply: [_message(replies[reply])])
    yield from tree_events(tree, Opened(name, title, None, {"oasst": metadata}))
    yield from notes


def _walk(prompt: Fields, replies: Replies, parents: dict[str, str | None]) -> str:
    """Take in all messages of a tree; return the last one of its best path."""
    waiting: list[tuple[Fields, str | None, bool]] = [(prompt, None, True)]
    present = ""
    while waiting:
        reply, parent, is_best = waiting.pop()
        name = reply["message_id"]
        replies[name], parents[name] = reply, parent
        present = name if is_best else present
        ranked = sorted(filter(_is_reply, list_of(reply.get("replies"))), key=_rank)
        below = [(each, name, is_best and each is ranked[0]) for each in ranked]
        waiting += reversed(below)
    return present


def _rank(reply: Fields) -> float:
    """Return a reply's place among those beside it; those without one are the last."""
    rank = reply.get("rank")
    return rank if isinstance(rank, int | float) else float("inf")


def _message(reply: Fields) -> Message:
    said: Message = {"role": ROLES[reply["role"]], "content": reply["text"]}
    moment = {"timestamp": iso_milliseconds(reply.get("created_date"))}
    extra = {"oasst": telling(without(reply, *_SAID))}
    return said | {"id": reply["message_id"]} | telling(moment) | extra
