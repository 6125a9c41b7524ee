"""What a tool gave back in VS Code, as text: plain, or a tree of the pieces of a prompt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..events import fields_of, list_of


def text_in(result: Any) -> str:
    """Return a result as text; what is neither text nor a tree, as JSON text."""
    parts = list_of(fields_of(result).get("content"))
    values = (fields_of(part).get("value", part) for part in parts)
    return "\n".join(map(_text, values))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    node = fields_of(fields_of(value).get("node"))
    if node:
        return "".join(_pieces(node)).removeprefix("\n")
    return json.dumps(value, ensure_ascii=False)


def _pieces(node: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a tree in their order, with the line breaks before them."""
    if node.get("lineBreakBefore") is True:
        yield "\n"
    if isinstance(node.get("text"), str):
        yield node["text"]
    for child in list_of(node.get("children")):
        yield from _pieces(fields_of(child))
