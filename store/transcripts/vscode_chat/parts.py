"""What VS Code's screen showed of an answer, as messages: for want of what the model said.

A tool that was used is a call, told by what it was given and what it gave back as far as that was
shown. Parts that only the screen has a use for are no messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import drop_empty_fields, find_first_text, get_fields, get_list, get_text

TOOL_PART_KIND = "toolInvocationSerialized"
THOUGHT_PART_KIND = "thinking"

TEXT_PART_KINDS = (None, "markdownContent", "markdownVuln", "inlineReference")
"""Kinds of parts that are the text of an answer."""

VSCODE_PART_KINDS = (*TEXT_PART_KINDS, THOUGHT_PART_KIND, TOOL_PART_KIND)
"""Kinds of parts that are read."""


def find_part_kind(part: Any) -> str | None:
    """Return the kind of a part, None for text without one."""
    return get_text(get_fields(part).get("kind"))


def parse_shown_answers(name: str, request: JsonFields) -> Iterator[Message]:
    """Yield the answers of a request: a new one begins with the first text behind tools."""
    parts = [get_fields(part) for part in get_list(request.get("response"))]
    spoken = [part for part in parts if find_part_kind(part) in VSCODE_PART_KINDS]
    runs = [(used, list(run)) for used, run in groupby(spoken, _is_tool_part)]
    said: list[JsonFields] = []
    number = 0
    for used, run in runs:
        if used:
            calls = {f"{name}-call-{number + place}": each for place, each in enumerate(run, 1)}
            number += len(run)
            yield _parse_shown_answer(said, calls)
            yield from map(_parse_shown_result, calls, run)
        said = [] if used else run
    if said:
        yield _parse_shown_answer(said, {})


def _is_tool_part(part: JsonFields) -> bool:
    return find_part_kind(part) == TOOL_PART_KIND


def _parse_shown_answer(said: list[JsonFields], calls: dict[str, JsonFields]) -> Message:
    texts = [_render_shown_part(part) for part in said if find_part_kind(part) != THOUGHT_PART_KIND]
    thoughts = [
        _parse_shown_thought(part) for part in said if find_part_kind(part) == THOUGHT_PART_KIND
    ]
    more = {
        "tool_calls": [_parse_shown_call(name, part) for name, part in calls.items()],
        "reasoning_content": "\n\n".join(filter(None, thoughts)),
    }
    return {"role": "assistant", "content": "".join(texts) or None} | drop_empty_fields(more)


def find_shown_text(value: Any) -> str:
    """Return a text of the screen: plain, or markdown."""
    told = (
        value,
        get_fields(value).get("value"),
        get_fields(get_fields(value).get("content")).get("value"),
    )
    return find_first_text(told) or ""


def _render_shown_part(part: JsonFields) -> str:
    """Return the text of a part; a reference to a file or a symbol, as its name."""
    if find_part_kind(part) != "inlineReference":
        return find_shown_text(part)
    told = get_fields(part.get("inlineReference"))
    place = (
        get_fields(told.get("uri"))
        or get_fields(get_fields(told.get("location")).get("uri"))
        or told
    )
    path = get_text(place.get("path")) or ""
    names = (part.get("name"), told.get("name"), path.rpartition("/")[2])
    return f"`{find_first_text(names) or path}`"


def _parse_shown_thought(part: JsonFields) -> str:
    value = part.get("value")
    if isinstance(value, list):
        return "".join(map(str, value))
    return get_text(value) or ""


def _parse_shown_call(name: str, part: JsonFields) -> JsonFields:
    function = {
        "name": get_text(part.get("toolId")) or "",
        "arguments": _render_shown_arguments(part),
    }
    return {
        "id": get_text(part.get("toolCallId")) or name,
        "type": "function",
        "function": function,
    }


def _render_shown_arguments(part: JsonFields) -> str:
    """Return what a tool was given, as JSON text: what was shown, or a terminal's command."""
    details, data = get_fields(part.get("resultDetails")), get_fields(part.get("toolSpecificData"))
    given = details.get("input") or data.get("rawInput")
    if isinstance(given, str):
        return given if given.lstrip().startswith("{") else _render_vscode_json({"input": given})
    line = get_fields(data.get("commandLine"))
    command = find_first_text((line.get("original"), data.get("command")))
    return _render_vscode_json(given or ({"command": command} if command else {}))


def _parse_shown_result(name: str, part: JsonFields) -> Message:
    details = get_fields(part.get("resultDetails"))
    messages = map(find_shown_text, (part.get("pastTenseMessage"), part.get("invocationMessage")))
    content = _render_shown_output(details.get("output")) or find_first_text(messages) or ""
    failed = details.get("isError") is True or _is_denied_call(part.get("isConfirmed"))
    link = {"tool_call_id": get_text(part.get("toolCallId")) or name, "content": content}
    return {"role": "tool"} | link | ({"messageStatus": "error"} if failed else {})


def _render_shown_output(output: Any) -> str:
    values = [output] if isinstance(output, str) else get_list(output)
    return "\n".join(filter(None, map(find_shown_text, values)))


def _is_denied_call(confirmed: Any) -> bool:
    return confirmed is False or get_fields(confirmed).get("type") == 0


def _render_vscode_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
