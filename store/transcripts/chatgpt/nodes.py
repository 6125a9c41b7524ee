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
from ...text import Fields
from ..events import (
    fields_of,
    first_text,
    list_of,
    simplest_content,
    telling,
    text_of,
    text_part,
    without,
)

TEXT_KEYS = ("parts", "text", "result", "content")
"""Keys of a content that may hold its text or parts, the usual one first."""

EVERYONE = (None, "", "all", "assistant")
"""Recipients of an answer that is no call."""

_SAID = ("id", "author", "content", "create_time")

Named = tuple[str, Any]
"""A node's id, and the node."""


def is_node(value: object) -> bool:
    """Tell whether a node says something: who, and what."""
    return _role_of(value) is not None and "content_type" in _content_of(value)


def message_of(name: str, node: object, above: Iterable[Named]) -> Message | None:
    """Return what a node says, None where it says nothing; ``above`` are its ancestors."""
    role = _role_of(node)
    if role is None:
        return None
    message: Message = {"role": role, "content": _said(node), "id": name}
    _add_reasoning(message, _content_of(node))
    if _is_call(node):
        message |= {"content": None, "tool_calls": [_call_of(name, node, message["content"])]}
    if role == "tool":
        tool = text_of(_author_of(node).get("name"))
        failed = _content_of(node).get("content_type") == "system_error"
        call = _open_call(tool, above)
        message |= {
            **({"name": tool} if tool else {}),
            **({"tool_call_id": call} if call else {}),
            **({"messageStatus": "error"} if failed else {}),
        }
    elif role != "assistant":
        message["content"] = message["content"] or ""
    return message | _moment_of(node) | {"chatgpt": _extra_of(node)}


def _fields_of(node: object) -> Fields:
    return fields_of(fields_of(node).get("message"))


def _content_of(node: object) -> Fields:
    return fields_of(_fields_of(node).get("content"))


def _author_of(node: object) -> Fields:
    return fields_of(_fields_of(node).get("author"))


def _role_of(node: object) -> str | None:
    return text_of(_author_of(node).get("role"))


def _said(node: object) -> object:
    """Return a content as text or parts, None for none."""
    content = _content_of(node)
    if content.get("content_type") == "user_editable_context":
        texts = (content.get("user_profile"), content.get("user_instructions"))
        return "\n\n".join(filter(None, map(text_of, texts)))
    held = next((content[key] for key in TEXT_KEYS if key in content), None)
    if isinstance(held, str):
        return held
    return simplest_content([_part(part) for part in list_of(held)])


def _part(part: Any) -> Any:
    """Return a part: a text, also one that was heard; another, such as an asset, as it is."""
    if isinstance(part, str):
        return text_part(part)
    if isinstance(part, dict) and text_of(part.get("text")):
        return {"type": "text", **part}
    return part if isinstance(part, dict) else text_part(_json(part))


def _add_reasoning(message: Message, content: Fields) -> None:
    """Add what a model thought, where that is what a node says."""
    if content.get("content_type") == "reasoning_recap":
        message |= {"content": None, "reasoning_content": message["content"]}
    thoughts = [fields_of(each) for each in list_of(content.get("thoughts"))]
    texts = [first_text([each.get("content"), each.get("summary")]) for each in thoughts]
    if any(texts):
        message["reasoning_content"] = "\n\n".join(filter(None, texts))


def _is_call(node: object) -> bool:
    return _role_of(node) == "assistant" and _fields_of(node).get("recipient") not in EVERYONE


def _call_of(name: str, node: object, asked: object) -> Fields:
    arguments = asked if isinstance(asked, str) and _is_object(asked) else _json({"input": asked})
    function = {"name": str(_fields_of(node)["recipient"]), "arguments": arguments}
    return {"id": name, "type": "function", "function": function}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _open_call(tool: str | None, above: Iterable[Named]) -> str | None:
    """Return the call right above a result, else the nearest that no result of its tool is below.

    Only the calls and results that directly precede it count.
    """
    for place, (name, node) in enumerate(takewhile(_is_of_tools, above)):
        if _is_call(node):
            if place == 0 or _fields_of(node)["recipient"] == tool:
                return name
        elif _author_of(node).get("name") == tool:
            return None
    return None


def _is_of_tools(named: Named) -> bool:
    node = named[1]
    return _is_call(node) or _role_of(node) == "tool"


def _moment_of(node: object) -> Fields:
    """Return when a node was made, in ms; nothing where it does not tell."""
    seconds = _fields_of(node).get("create_time")
    if isinstance(seconds, int | float) and 0 < seconds < 2**40:
        return {"timestamp": round(seconds * 1000)}
    return {}


def _extra_of(node: object) -> Fields:
    """Return what a node says beyond its message."""
    fields = _fields_of(node)
    extra = without(fields, *_SAID)
    extra["author"] = without(_author_of(node), "role", "name", "metadata")
    extra |= _beside_text(_content_of(node))
    return telling(extra)


def _beside_text(content: Fields) -> Fields:
    """Return what a content says beside its text; of a usual one, nothing."""
    used = [key for key in TEXT_KEYS if key in content][:1]
    rest = without(content, *used)
    return {} if rest == {"content_type": "text"} else {"content": rest}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
