"""Exports of ChatGPT."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice, takewhile
from typing import Any

from ..records import Message
from ..text import JsonFields, wrap_in_list
from .events import (
    Event,
    SessionEvent,
    SessionNames,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_text,
    render_first_title,
    simplify_content,
    split_metadata,
)
from .source import SourceValue, TranscriptSource, parse_conversations
from .trees import Parents, Tree, build_tree_events, find_node_parents, list_ancestors

__all__ = ["has_chatgpt_nodes", "parse_chatgpt"]

CONTENT_TEXT_KEYS = ("parts", "text", "result", "content")
"""Keys of a content that may hold its text or parts, the usual one first."""

NON_TOOL_RECIPIENTS = (None, "", "all", "assistant")
"""Recipients of an answer that is no call."""

_NODE_MESSAGE_KEYS = ("id", "author", "content", "create_time")

NamedNode = tuple[str, Any]
"""A node's id, and the node."""


def is_speaking_node(value: object) -> bool:
    """Tell whether a node says something: who, and what."""
    return _find_node_role(value) is not None and "content_type" in _find_node_content(value)


def parse_chatgpt_node(name: str, node: object, above: Iterable[NamedNode]) -> Message | None:
    """Return what a node says, None where it says nothing; ``above`` are its ancestors."""
    role = _find_node_role(node)
    if role is None:
        return None
    message: Message = {"role": role, "content": _parse_node_content(node), "id": name}
    _add_reasoning(message, _find_node_content(node))
    if _is_call_node(node):
        message |= {
            "content": None,
            "tool_calls": [_parse_node_call(name, node, message["content"])],
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
    return message | _parse_node_timestamp(node) | {"chatgpt": _collect_node_extra(node)}


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
    return simplify_content([_parse_node_part(part) for part in get_list(held)])


def _parse_node_part(part: Any) -> Any:
    """Return a part: a text, also one that was heard; another, such as an asset, as it is."""
    if isinstance(part, str):
        return build_text_part(part)
    if isinstance(part, dict) and get_text(part.get("text")):
        return {"type": "text", **part}
    return part if isinstance(part, dict) else build_text_part(_render_node_json(part))


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


def _parse_node_call(name: str, node: object, asked: object) -> JsonFields:
    arguments = (
        asked
        if isinstance(asked, str) and _is_object_text(asked)
        else _render_node_json({"input": asked})
    )
    function = {"name": str(_find_node_message(node)["recipient"]), "arguments": arguments}
    return {"id": name, "type": "function", "function": function}


def _is_object_text(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _find_open_call(tool: str | None, above: Iterable[NamedNode]) -> str | None:
    """Return the call right above a result, else the nearest that no result of its tool is below.

    Only the calls and results that directly precede it count.
    """
    for place, (name, node) in enumerate(takewhile(_is_tool_node, above)):
        if _is_call_node(node):
            if place == 0 or _find_node_message(node)["recipient"] == tool:
                return name
        elif _find_node_author(node).get("name") == tool:
            return None
    return None


def _is_tool_node(named: NamedNode) -> bool:
    node = named[1]
    return _is_call_node(node) or _find_node_role(node) == "tool"


def _parse_node_timestamp(node: object) -> JsonFields:
    """Return when a node was made, in ms; nothing where it does not tell."""
    seconds = _find_node_message(node).get("create_time")
    if isinstance(seconds, int | float) and 0 < seconds < 2**40:
        return {"timestamp": round(seconds * 1000)}
    return {}


def _collect_node_extra(node: object) -> JsonFields:
    """Return what a node says beyond its message."""
    fields = _find_node_message(node)
    extra = drop_keys(fields, *_NODE_MESSAGE_KEYS)
    extra["author"] = drop_keys(_find_node_author(node), "role", "name", "metadata")
    extra |= _collect_content_extra(_find_node_content(node))
    return drop_empty_fields(extra)


def _collect_content_extra(content: JsonFields) -> JsonFields:
    """Return what a content says beside its text; of a usual one, nothing."""
    used = [key for key in CONTENT_TEXT_KEYS if key in content][:1]
    rest = drop_keys(content, *used)
    return {} if rest == {"content_type": "text"} else {"content": rest}


def _render_node_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


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
