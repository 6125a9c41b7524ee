"""Trees of Moatless Tools: nodes of an action and its observation, each with its completion."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import Fields
from ..blocks import assistant_message, blocks_of
from ..events import (
    Event,
    Opened,
    SessionNames,
    call_of,
    fields_of,
    list_of,
    split_metadata,
    telling,
    text_of,
    title_of,
    within,
    without,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Tree, tree_events

KEY = "moatless"

BUILT = "build_action"
"""The completion that asked for a node's action."""

_SAID = ("node_id", "parent_id", "message", "action", "observation", "output", "completions")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is such a tree."""
    fields = fields_of(value)
    return "agent" in fields and any(map(_is_node, list_of(fields.get("nodes"))))


def _is_node(value: Any) -> bool:
    return {"node_id", "parent_id"} <= fields_of(value).keys()


def parse(source: Source) -> Iterator[Event]:
    """Return the session of each tree, and its branches."""
    return conversations(source, looks, "tree of nodes", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    told = fields_of(item.value)
    nodes = {str(node["node_id"]): node for node in filter(_is_node, told["nodes"])}
    parents = {name: _parent(node) for name, node in nodes.items()}
    agent = fields_of(told["agent"])
    said = {name: _messages(name, node) for name, node in nodes.items()}
    system = text_of(agent.get("system_prompt"))
    if system:
        first = next(iter(said.values()))
        first.insert(0, {"role": "system", "content": system})
    name = names.name(text_of(within(told, "metadata", "instance_id")))
    model = text_of(within(agent, "completion", "model"))
    metadata, notes = split_metadata(
        without(told, "nodes", "agent") | {"agent": without(agent, "system_prompt")}
    )
    title = title_of(chain.from_iterable(said.values()))
    opened = Opened(name, title, None, telling({"model": model, KEY: metadata}))
    yield from tree_events(Tree(parents, None, said.__getitem__), opened)
    yield from notes


def _parent(node: Fields) -> str | None:
    return None if node["parent_id"] is None else str(node["parent_id"])


def _messages(name: str, node: Fields) -> list[Message]:
    """Return the messages of a node: a task, or an action and its result."""
    made: list[Message] = []
    if text_of(node.get("message")):
        made.append({"role": "user", "content": node["message"], "id": name})
    if node.get("action"):
        built = fields_of(within(node, "completions", BUILT))
        answer = _answer(built) or _action(name, fields_of(node["action"]))
        facts = telling({"usage": built.get("usage"), "model": built.get("model")})
        rest = facts | telling(without(node, *_SAID))
        calls = answer.get("tool_calls", [{"id": f"call-{name}"}])
        seen = text_of(within(node, "observation", "message"))
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": seen or ""} for call in calls
        ]
        made += [answer | {"id": f"{name}-action", KEY: rest}, *(results if seen else ())]
    return made


def _answer(built: Fields) -> Message | None:
    """Return the answer as it came, None where it holds no call."""
    blocks = blocks_of(within(built, "response", "content")) or []
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    return assistant_message(blocks)[0] if calls else None


def _action(name: str, action: Fields) -> Message:
    """Return an action as a call, where its answer was not kept."""
    kind = text_of(action.get("action_args_class")) or "action"
    tool = kind.rpartition(".")[2].removesuffix("Args")
    call = call_of(f"call-{name}", tool, without(action, "action_args_class"))
    return {"role": "assistant", "content": None, "tool_calls": [call]}
