"""Trees of Moatless Tools: nodes of an action and its observation, each with its completion."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..blocks import build_assistant_message, parse_blocks
from ..parser_events import (
    Event,
    SessionEvent,
    SessionNames,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_title,
    get_fields,
    get_list,
    get_nested,
    get_text,
    split_metadata,
)
from ..source import SourceValue, for_each_conversation
from ..trees import Tree, build_tree_events

__all__ = ["is_moatless_tree", "parse_moatless"]

MOATLESS_KEY = "moatless"

ACTION_COMPLETION = "build_action"
"""The completion that asked for a node's action."""

_MOATLESS_NODE_KEYS = (
    "node_id",
    "parent_id",
    "message",
    "action",
    "observation",
    "output",
    "completions",
)


def is_moatless_tree(value: Any) -> bool:
    """Tell whether a JSON value is such a tree."""
    fields = get_fields(value)
    return "agent" in fields and any(map(_is_moatless_node, get_list(fields.get("nodes"))))


def _is_moatless_node(value: Any) -> bool:
    return {"node_id", "parent_id"} <= get_fields(value).keys()


@for_each_conversation(is_moatless_tree, "tree of nodes")
def parse_moatless(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a tree, and its branches."""
    told = get_fields(item.value)
    nodes = {str(node["node_id"]): node for node in filter(_is_moatless_node, told["nodes"])}
    parents = {
        name: None if node["parent_id"] is None else str(node["parent_id"])
        for name, node in nodes.items()
    }
    agent = get_fields(told["agent"])
    said = {name: _parse_moatless_node(name, node) for name, node in nodes.items()}
    system = get_text(agent.get("system_prompt"))
    if system:
        first = next(iter(said.values()))
        first.insert(0, {"role": "system", "content": system})
    name = names.name(get_text(get_nested(told, "metadata", "instance_id")))
    model = get_text(get_nested(agent, "completion", "model"))
    metadata, notes = split_metadata(
        drop_keys(told, "nodes", "agent") | {"agent": drop_keys(agent, "system_prompt")}
    )
    title = find_title(chain.from_iterable(said.values()))
    opened = SessionEvent(
        name, title, None, drop_empty_fields({"model": model, MOATLESS_KEY: metadata})
    )
    yield from build_tree_events(Tree(parents, None, said.__getitem__), opened)
    yield from notes


def _parse_moatless_node(name: str, node: JsonFields) -> list[Message]:
    """Return the messages of a node: a task, or an action and its result."""
    made: list[Message] = []
    if get_text(node.get("message")):
        made.append({"role": "user", "content": node["message"], "id": name})
    if node.get("action"):
        built = get_fields(get_nested(node, "completions", ACTION_COMPLETION))
        blocks = parse_blocks(get_nested(built, "response", "content")) or []
        if any(block.get("type") == "tool_use" for block in blocks):
            answer = build_assistant_message(blocks)[0]
        else:
            answer = _build_action_message(name, get_fields(node["action"]))
        facts = drop_empty_fields({"usage": built.get("usage"), "model": built.get("model")})
        rest = facts | drop_empty_fields(drop_keys(node, *_MOATLESS_NODE_KEYS))
        calls = answer.get("tool_calls", [{"id": f"call-{name}"}])
        seen = get_text(get_nested(node, "observation", "message"))
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": seen or ""} for call in calls
        ]
        made += [answer | {"id": f"{name}-action", MOATLESS_KEY: rest}, *(results if seen else ())]
    return made


def _build_action_message(name: str, action: JsonFields) -> Message:
    """Return an action as a call, where its answer was not kept."""
    kind = get_text(action.get("action_args_class")) or "action"
    tool = kind.rpartition(".")[2].removesuffix("Args")
    call = build_chat_call(f"call-{name}", tool, drop_keys(action, "action_args_class"))
    return {"role": "assistant", "content": None, "tool_calls": [call]}
