"""What a tool gave back in VS Code, as text: plain, or a tree of the pieces of a prompt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..events import get_fields, get_list


def render_vscode_result(result: Any) -> str:
    """Return a result as text; what is neither text nor a tree, as JSON text."""
    parts = get_list(get_fields(result).get("content"))
    values = (get_fields(part).get("value", part) for part in parts)
    return "\n".join(map(_render_result_value, values))


def _render_result_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    node = get_fields(get_fields(value).get("node"))
    if node:
        return "".join(_list_prompt_pieces(node)).removeprefix("\n")
    return json.dumps(value, ensure_ascii=False)


def _list_prompt_pieces(node: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a tree in their order, with the line breaks before them."""
    if node.get("lineBreakBefore") is True:
        yield "\n"
    if isinstance(node.get("text"), str):
        yield node["text"]
    for child in get_list(node.get("children")):
        yield from _list_prompt_pieces(get_fields(child))
