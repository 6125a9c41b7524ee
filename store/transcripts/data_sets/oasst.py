"""Message trees of OpenAssistant: a prompt, and replies to replies, the best of each first.

The path of the best replies is the session; every other one is a branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields, wrap_in_list
from ..parser_events import (
    Event,
    SessionEvent,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_title,
    get_fields,
    get_list,
    get_text,
    parse_iso_milliseconds,
    split_metadata,
)
from ..source import SourceValue, TranscriptSource, parse_conversations
from ..trees import Tree, build_tree_events

__all__ = ["has_oasst_tree", "parse_oasst"]

OASST_ROLES = {"prompter": "user", "assistant": "assistant"}

_OASST_REPLY_KEYS = ("message_id", "parent_id", "text", "role", "replies", "created_date")

RepliesById = dict[str, JsonFields]
"""The messages of a tree, each under its id."""


def has_oasst_tree(value: Any) -> bool:
    """Tell whether a JSON value is such a tree, or a list of them."""
    return any(map(_is_oasst_tree, wrap_in_list(value)))


def _is_oasst_tree(value: Any) -> bool:
    fields = get_fields(value)
    return "message_tree_id" in fields and _is_oasst_reply(fields.get("prompt"))


def _is_oasst_reply(value: Any) -> bool:
    fields = get_fields(value)
    named = get_text(fields.get("role")) in OASST_ROLES and bool(get_text(fields.get("message_id")))
    return named and isinstance(fields.get("text"), str)


def parse_oasst(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each tree, its branches after it."""
    return parse_conversations(source, _is_oasst_tree, "tree of messages", _parse_oasst_tree)


def _parse_oasst_tree(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    replies: RepliesById = {}
    parents: dict[str, str | None] = {}
    present = _collect_replies(item.value["prompt"], replies, parents)
    metadata, notes = split_metadata(drop_keys(item.value, "prompt", "message_tree_id"))
    name = names.name(str(item.value["message_tree_id"]))
    title = find_title([_parse_oasst_reply(item.value["prompt"])])
    tree = Tree(parents, present, lambda reply: [_parse_oasst_reply(replies[reply])])
    yield from build_tree_events(tree, SessionEvent(name, title, None, {"oasst": metadata}))
    yield from notes


def _collect_replies(
    prompt: JsonFields, replies: RepliesById, parents: dict[str, str | None]
) -> str:
    """Take in all messages of a tree; return the last one of its best path."""
    waiting: list[tuple[JsonFields, str | None, bool]] = [(prompt, None, True)]
    present = ""
    while waiting:
        reply, parent, is_best = waiting.pop()
        name = reply["message_id"]
        replies[name], parents[name] = reply, parent
        present = name if is_best else present
        ranked = sorted(
            filter(_is_oasst_reply, get_list(reply.get("replies"))), key=_find_reply_rank
        )
        below = [(each, name, is_best and each is ranked[0]) for each in ranked]
        waiting += reversed(below)
    return present


def _find_reply_rank(reply: JsonFields) -> float:
    """Return a reply's place among those beside it; those without one are the last."""
    rank = reply.get("rank")
    return rank if isinstance(rank, int | float) else float("inf")


def _parse_oasst_reply(reply: JsonFields) -> Message:
    said: Message = {"role": OASST_ROLES[reply["role"]], "content": reply["text"]}
    moment = {"timestamp": parse_iso_milliseconds(reply.get("created_date"))}
    extra = {"oasst": drop_empty_fields(drop_keys(reply, *_OASST_REPLY_KEYS))}
    return said | {"id": reply["message_id"]} | drop_empty_fields(moment) | extra
