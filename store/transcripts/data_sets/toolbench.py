"""Answers of ToolBench that were searched for as trees of thoughts, actions and their inputs.

A call is two nodes, an action and its input, which has the result. The path to the answer is the
session; what the search gave up are branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import (
    Event,
    Opened,
    SessionNames,
    call_of,
    fields_of,
    list_of,
    objects_of,
    split_metadata,
    telling,
    text_of,
    title_line,
    within,
    without,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Tree, tree_events

THOUGHT, INPUT = "Thought", "Action Input"

PROMPTS = ("system", "user")
"""Roles of the messages that a search begins with."""

Nodes = dict[str, Fields]
"""The nodes of a tree, each under its number."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such an answer."""
    fields = fields_of(value)
    return "answer_generation" in fields and "node_type" in _root(fields)


def _root(fields: Fields) -> Fields:
    return fields_of(within(fields, "tree", "tree"))


def parse(source: Source) -> Iterator[Event]:
    """Return the session of each answer, and its branches."""
    return conversations(source, looks, "tree of thoughts", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    told = fields_of(item.value)
    answer = fields_of(told["answer_generation"])
    nodes: Nodes = {}
    parents: dict[str, str | None] = {}
    ends = _walk(_root(told), nodes, parents)
    prompt = _prompt(answer)

    def said(node: str) -> list[Message]:
        above = fields_of(nodes.get(parents[node] or ""))
        return _messages(node, nodes[node], above) if parents[node] else prompt

    known = {**without(told, "tree", "answer_generation", "compare_candidates"), **answer}
    metadata, notes = split_metadata(telling(without(known, "train_messages", "query")))
    title = title_line(text_of(answer.get("query")) or "") or None
    opened = Opened(names.name(), title, None, metadata)
    yield from tree_events(Tree(parents, ends, said), opened)
    yield from notes


def _walk(root: Fields, nodes: Nodes, parents: dict[str, str | None]) -> str | None:
    """Take in all nodes of a tree, in order; return the last one that was found to answer."""
    waiting: list[tuple[Fields, str | None]] = [(root, None)]
    answered: str | None = None
    while waiting:
        node, parent = waiting.pop()
        name = f"node-{len(nodes) + 1}"
        nodes[name], parents[name] = node, parent
        answered = name if node.get("finished") is True else answered
        below = objects_of(node.get("children"))
        waiting += [(each, name) for each in below[::-1]]
    return answered


def _prompt(answer: Fields) -> list[Message]:
    """Return the prompt of a search: as it was sent, else the query."""
    sent = chain.from_iterable(list_of(answer.get("train_messages"))[-1:])
    begun = list(filter(_is_prompt, islice(sent, len(PROMPTS))))
    return begun or [{"role": "user", "content": text_of(answer.get("query")) or ""}]


def _is_prompt(told: Any) -> bool:
    fields = fields_of(told)
    return fields.get("role") in PROMPTS and bool(text_of(fields.get("content")))


def _messages(name: str, node: Fields, above: Fields) -> list[Message]:
    """Return what a node says; an action says it with its input."""
    said = text_of(node.get("description")) or ""
    if node.get("node_type") == THOUGHT:
        return [{"role": "assistant", "content": said, "id": name}]
    if node.get("node_type") != INPUT:
        return []
    call = call_of(f"call-{name}", above.get("description"), said)
    message = {"role": "assistant", "content": None, "tool_calls": [call], "id": name}
    result = {"role": "tool", "tool_call_id": call["id"], "content": node.get("observation")}
    return [message, result] if text_of(node.get("observation")) else [message]
