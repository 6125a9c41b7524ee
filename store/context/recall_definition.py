"""The definition of the tool by which a model calls back hidden content."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..tools import RECALL_TOOL_NAME

RECALL_DESCRIPTION = (
    "Show earlier parts of this conversation that are out of sight by now: messages behind a "
    "summary, results of tools that were cleared or shortened, arguments of calls that were cut. "
    "Give exact names that they have (the file or command of the call, identifiers, numbers, error "
    "texts), or some words. The best passages come first."
)

Definition = Mapping[str, Any]
"""The definition of a tool as an API takes it."""


def recall_tool(name: str = RECALL_TOOL_NAME) -> dict[str, Any]:
    """Return the definition of the tool, in the format of chat completions."""
    properties = {
        "names": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Exact names to look for; each counts.",
        },
        "text": {"type": "string", "description": "Words to look for; each counts."},
    }
    parameters = {"type": "object", "properties": properties}
    function = {"name": name, "description": RECALL_DESCRIPTION, "parameters": parameters}
    return {"type": "function", "function": function}


def add_recall_tool(tools: str | Sequence[Definition] | None) -> str | list[Definition]:
    """Return tools with that of recall, unless one of that name is among them.

    Tools in a text get a line with the definition.
    """
    made = recall_tool()
    if isinstance(tools, str):
        return f"{tools}\n{json.dumps(made, ensure_ascii=False)}"
    given = [*(tools or ())]
    functions = [each.get("function") or each for each in given]
    names = [each.get("name") for each in functions]
    return given if RECALL_TOOL_NAME in names else [*given, made]
