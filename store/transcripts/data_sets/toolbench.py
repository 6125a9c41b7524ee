"""Answers of ToolBench that were searched for as trees of thoughts, actions and their inputs.

A call is two nodes, an action and its input, which has the result. The path to the answer is the
session; what the search gave up are branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..parser_events import (
    Event,
    SessionEvent,
    SessionNames,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    render_title,
    split_metadata,
)
from ..source import SourceValue, for_each_conversation
from ..trees import Tree, build_tree_events

__all__ = ["is_toolbench_answer", "parse_toolbench"]

THOUGHT, INPUT = "Thought", "Action Input"

TOOLBENCH_PROMPT_ROLES = ("system", "user")
"""Roles of the messages that a search begins with."""

NodesByNumber = dict[str, JsonFields]
"""The nodes of a tree, each under its number."""


def is_toolbench_answer(value: Any) -> bool:
    """Tell whether a JSON value is such an answer."""
    fields = get_fields(value)
    return "answer_generation" in fields and "node_type" in _find_root_node(fields)


def _find_root_node(fields: JsonFields) -> JsonFields:
    return get_fields(get_nested(fields, "tree", "tree"))


@for_each_conversation(is_toolbench_answer, "tree of thoughts")
def parse_toolbench(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of an answer, and its branches."""
    told = get_fields(item.value)
    answer = get_fields(told["answer_generation"])
    nodes: NodesByNumber = {}
    parents: dict[str, str | None] = {}
    ends = _collect_toolbench_nodes(_find_root_node(told), nodes, parents)
    sent = map(get_fields, chain.from_iterable(get_list(answer.get("train_messages"))[-1:]))
    begun = [
        each
        for each in islice(sent, len(TOOLBENCH_PROMPT_ROLES))
        if each.get("role") in TOOLBENCH_PROMPT_ROLES and get_text(each.get("content"))
    ]
    prompt = begun or [{"role": "user", "content": get_text(answer.get("query")) or ""}]

    def said(node: str) -> list[Message]:
        above = get_fields(nodes.get(parents[node] or ""))
        return _parse_toolbench_node(node, nodes[node], above) if parents[node] else prompt

    known = {**drop_keys(told, "tree", "answer_generation", "compare_candidates"), **answer}
    metadata, notes = split_metadata(drop_empty_fields(drop_keys(known, "train_messages", "query")))
    title = render_title(get_text(answer.get("query")) or "") or None
    opened = SessionEvent(names.name(), title, None, metadata)
    yield from build_tree_events(Tree(parents, ends, said), opened)
    yield from notes


def _collect_toolbench_nodes(
    root: JsonFields, nodes: NodesByNumber, parents: dict[str, str | None]
) -> str | None:
    """Take in all nodes of a tree, in order; return the last one that was found to answer."""
    waiting: list[tuple[JsonFields, str | None]] = [(root, None)]
    answered: str | None = None
    while waiting:
        node, parent = waiting.pop()
        name = f"node-{len(nodes) + 1}"
        nodes[name], parents[name] = node, parent
        answered = name if node.get("finished") is True else answered
        below = get_objects(node.get("children"))
        waiting += [(each, name) for each in below[::-1]]
    return answered


def _parse_toolbench_node(name: str, node: JsonFields, above: JsonFields) -> list[Message]:
    """Return what a node says; an action says it with its input."""
    said = get_text(node.get("description")) or ""
    if node.get("node_type") == THOUGHT:
        return [{"role": "assistant", "content": said, "id": name}]
    if node.get("node_type") != INPUT:
        return []
    call = build_chat_call(f"call-{name}", above.get("description"), said)
    message = {"role": "assistant", "content": None, "tool_calls": [call], "id": name}
    result = {"role": "tool", "tool_call_id": call["id"], "content": node.get("observation")}
    return [message, result] if get_text(node.get("observation")) else [message]
