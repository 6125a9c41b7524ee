"""Exports of ChatGPT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from ..records import Message
from ..text import JsonFields, wrap_in_list
from .parser_events import (
    Event,
    SessionEvent,
    SessionNames,
    build_text_part,
    convert_to_milliseconds,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_text,
    is_json_object,
    render_first_title,
    render_json,
    simplify_content,
    split_metadata,
)
from .source import SourceValue, for_each_conversation
from .trees import Parents, Tree, build_tree_events, find_node_parents, list_ancestors

__all__ = ["has_chatgpt_nodes", "parse_chatgpt"]

CONTENT_TEXT_KEYS = ("parts", "text", "result", "content")
"""Keys of a content that may hold its text or parts, the usual one first."""

NON_TOOL_RECIPIENTS = (None, "", "all", "assistant")
"""Recipients of an answer that is no call."""

_NODE_MESSAGE_KEYS = ("id", "author", "content", "create_time")

NamedNode = tuple[str, Any]
"""A node's id, and the node."""


def parse_chatgpt_node(name: str, node: object, above: Iterable[NamedNode]) -> Message | None:
    """Return what a node says, None where it says nothing; ``above`` are its ancestors."""
    role = _find_node_role(node)
    if role is None:
        return None
    message: Message = {"role": role, "content": _parse_node_content(node), "id": name}
    _add_reasoning(message, _find_node_content(node))
    if _is_call_node(node):
        asked = message["content"]
        arguments = (
            asked
            if isinstance(asked, str) and is_json_object(asked)
            else render_json({"input": asked})
        )
        function = {"name": str(_find_node_message(node)["recipient"]), "arguments": arguments}
        message |= {
            "content": None,
            "tool_calls": [{"id": name, "type": "function", "function": function}],
        }
    if role == "tool":
        tool = get_text(_find_node_author(node).get("name"))
        failed = _find_node_content(node).get("content_type") == "system_error"
        call = _find_open_call(tool, above)
        message |= {
            **({"name": tool} if tool else {}),
            **({"tool_call_id": call} if call else {}),
            **({"messageStatus": "error"} if failed else {}),
        }
    elif role != "assistant":
        message["content"] = message["content"] or ""
    moment = convert_to_milliseconds(_find_node_message(node).get("create_time"))
    if moment is not None:
        message["timestamp"] = moment
    return message | {"chatgpt": _collect_node_extra(node)}


def _find_node_message(node: object) -> JsonFields:
    return get_fields(get_fields(node).get("message"))


def _find_node_content(node: object) -> JsonFields:
    return get_fields(_find_node_message(node).get("content"))


def _find_node_author(node: object) -> JsonFields:
    return get_fields(_find_node_message(node).get("author"))


def _find_node_role(node: object) -> str | None:
    return get_text(_find_node_author(node).get("role"))


def _parse_node_content(node: object) -> object:
    """Return a content as text or parts, None for none."""
    content = _find_node_content(node)
    if content.get("content_type") == "user_editable_context":
        texts = (content.get("user_profile"), content.get("user_instructions"))
        return "\n\n".join(filter(None, map(get_text, texts)))
    held = next((content[key] for key in CONTENT_TEXT_KEYS if key in content), None)
    if isinstance(held, str):
        return held
    return simplify_content(list(map(_parse_node_part, get_list(held))))


def _parse_node_part(part: Any) -> JsonFields:
    """Return a part of a content: texts, and objects that say something as texts."""
    if isinstance(part, dict):
        return {"type": "text", **part} if get_text(part.get("text")) else part
    return build_text_part(part if isinstance(part, str) else render_json(part))


def _add_reasoning(message: Message, content: JsonFields) -> None:
    """Add what a model thought, where that is what a node says."""
    if content.get("content_type") == "reasoning_recap":
        message |= {"content": None, "reasoning_content": message["content"]}
    thoughts = [get_fields(each) for each in get_list(content.get("thoughts"))]
    texts = [find_first_text([each.get("content"), each.get("summary")]) for each in thoughts]
    if any(texts):
        message["reasoning_content"] = "\n\n".join(filter(None, texts))


def _is_call_node(node: object) -> bool:
    return (
        _find_node_role(node) == "assistant"
        and _find_node_message(node).get("recipient") not in NON_TOOL_RECIPIENTS
    )


def _find_open_call(tool: str | None, above: Iterable[NamedNode]) -> str | None:
    """Return the call right above a result, else the nearest that no result of its tool is below.

    Only the calls and results that directly precede it count.
    """
    for place, (name, node) in enumerate(above):
        if not _is_call_node(node) and _find_node_role(node) != "tool":
            break
        if _is_call_node(node):
            if place == 0 or _find_node_message(node)["recipient"] == tool:
                return name
        elif _find_node_author(node).get("name") == tool:
            return None
    return None


def _collect_node_extra(node: object) -> JsonFields:
    """Return what a node says beyond its message."""
    fields = _find_node_message(node)
    extra = drop_keys(fields, *_NODE_MESSAGE_KEYS)
    extra["author"] = drop_keys(_find_node_author(node), "role", "name", "metadata")
    content = _find_node_content(node)
    used = [key for key in CONTENT_TEXT_KEYS if key in content][:1]
    rest = drop_keys(content, *used)
    extra |= {} if rest == {"content_type": "text"} else {"content": rest}
    return drop_empty_fields(extra)


CHATGPT_ID_KEYS = ("conversation_id", "id")

CHATGPT_SESSION_KEYS = ("title", "mapping", "current_node")
"""Keys of a conversation that say what its session says."""


def has_chatgpt_nodes(value: Any) -> bool:
    """Tell whether a JSON value is such a conversation, or a list of them, with words in it."""
    nodes = (node for each in wrap_in_list(value) for node in _find_chatgpt_nodes(each).values())
    return any(
        (_find_node_role(value) is not None and "content_type" in _find_node_content(value))
        for value in nodes
    )


def _find_chatgpt_nodes(value: object) -> JsonFields:
    return get_fields(get_fields(value).get("mapping"))


@for_each_conversation(_find_chatgpt_nodes, "conversation: it has no 'mapping' of nodes")
def parse_chatgpt(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of a conversation, its branches after it."""
    fields = get_fields(item.value)
    nodes = _find_chatgpt_nodes(fields)
    parents = find_node_parents(nodes, "parent")
    said = partial(_list_node_messages, nodes, parents)
    tree = Tree(parents, get_text(fields.get("current_node")), said)
    name = names.name(find_first_text(map(fields.get, CHATGPT_ID_KEYS)))
    kept, notes = split_metadata(drop_empty_fields(drop_keys(fields, *CHATGPT_SESSION_KEYS)))
    metadata = drop_empty_fields({"model": get_text(fields.get("default_model_slug"))})
    metadata["chatgpt"] = kept
    title = render_first_title([fields.get("title")])
    yield from build_tree_events(tree, SessionEvent(name, title, None, metadata))
    yield from notes


def _list_node_messages(nodes: JsonFields, parents: Parents, name: str) -> list[Message]:
    """Return a node's message, a result with the call above it that it answers."""
    above = islice(list_ancestors(parents, name), 1, None)
    message = parse_chatgpt_node(name, nodes[name], ((each, nodes[each]) for each in above))
    return [message] if message else []
