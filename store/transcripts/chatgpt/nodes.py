"""A node of a ChatGPT conversation as one message of the chat.

An answer that is meant for a tool (``recipient``) is a call, and as the export has no ids of calls,
it is named by its node; the tool's answer right below it is its result. What a node says beyond the
chat's shape is kept under one extra key, ``chatgpt``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import (
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_text,
    simplify_content,
)

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
