"""What a message, or a summary, says in words: what is searched, and what hits are shown by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..messages import Message, part_text
from .terms import clean


def said(message: Message) -> str:
    """Return the texts of a message, and its calls: names of tools, then their arguments."""
    texts = [*_texts(message.get("content"))]
    for call in _listed(message.get("tool_calls")):
        texts += _of_call(call)
    return clean("\n".join(texts))


def in_summary(title: str | None, body: str) -> str:
    """Return the text of a summary, its title before it."""
    return clean("\n".join(filter(None, (title, body))))


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of a content; no pictures or other data."""
    if isinstance(content, str):
        yield content
    yield from filter(None, map(part_text, _listed(content)))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def tools_in(message: Message) -> Iterator[str]:
    """Yield the names of the tools that a message calls."""
    for call in _listed(message.get("tool_calls")):
        name = _function(call).get("name")
        if isinstance(name, str):
            yield name


def _function(call: Any) -> dict[str, Any]:
    given = call if isinstance(call, dict) else {}
    function = given.get("function")
    return function if isinstance(function, dict) else given


def _of_call(call: Any) -> Iterator[str]:
    asked = _function(call)
    yield from _leaves(asked.get("name"))
    yield from _leaves(_read(asked.get("arguments")))


def _read(arguments: Any) -> Any:
    """Return the value of a JSON text; the text itself where it is none."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _leaves(value: Any) -> Iterator[str]:
    """Yield what a JSON value says: its keys, texts and numbers, in their order."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += [part for pair in reversed(each.items()) for part in reversed(pair)]
        elif isinstance(each, list):
            waiting += reversed(each)
        elif each is not None:
            yield str(each)
