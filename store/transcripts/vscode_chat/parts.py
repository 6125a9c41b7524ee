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
from ...text import Fields
from ..events import fields_of, first_text, list_of, telling, text_of

TOOL = "toolInvocationSerialized"
THOUGHT = "thinking"

TEXTS = (None, "markdownContent", "markdownVuln", "inlineReference")
"""Kinds of parts that are the text of an answer."""

SPOKEN = (*TEXTS, THOUGHT, TOOL)
"""Kinds of parts that are read."""


def kind_of(part: Any) -> str | None:
    """Return the kind of a part, None for text without one."""
    return text_of(fields_of(part).get("kind"))


def answers_of(name: str, request: Fields) -> Iterator[Message]:
    """Yield the answers of a request: a new one begins with the first text behind tools."""
    parts = [fields_of(part) for part in list_of(request.get("response"))]
    spoken = [part for part in parts if kind_of(part) in SPOKEN]
    runs = [(used, list(run)) for used, run in groupby(spoken, _is_tool)]
    said: list[Fields] = []
    number = 0
    for used, run in runs:
        if used:
            calls = {f"{name}-call-{number + place}": each for place, each in enumerate(run, 1)}
            number += len(run)
            yield _answer(said, calls)
            yield from map(_result, calls, run)
        said = [] if used else run
    if said:
        yield _answer(said, {})


def _is_tool(part: Fields) -> bool:
    return kind_of(part) == TOOL


def _answer(said: list[Fields], calls: dict[str, Fields]) -> Message:
    texts = [_text(part) for part in said if kind_of(part) != THOUGHT]
    thoughts = [_thought(part) for part in said if kind_of(part) == THOUGHT]
    more = {
        "tool_calls": [_call(name, part) for name, part in calls.items()],
        "reasoning_content": "\n\n".join(filter(None, thoughts)),
    }
    return {"role": "assistant", "content": "".join(texts) or None} | telling(more)


def shown(value: Any) -> str:
    """Return a text of the screen: plain, or markdown."""
    told = (
        value,
        fields_of(value).get("value"),
        fields_of(fields_of(value).get("content")).get("value"),
    )
    return first_text(told) or ""


def _text(part: Fields) -> str:
    """Return the text of a part; a reference to a file or a symbol, as its name."""
    if kind_of(part) != "inlineReference":
        return shown(part)
    told = fields_of(part.get("inlineReference"))
    place = (
        fields_of(told.get("uri")) or fields_of(fields_of(told.get("location")).get("uri")) or told
    )
    path = text_of(place.get("path")) or ""
    return f"`{first_text((part.get('name'), told.get('name'), path.rpartition('/')[2])) or path}`"


def _thought(part: Fields) -> str:
    value = part.get("value")
    if isinstance(value, list):
        return "".join(map(str, value))
    return text_of(value) or ""


def _call(name: str, part: Fields) -> Fields:
    function = {"name": text_of(part.get("toolId")) or "", "arguments": _arguments(part)}
    return {"id": text_of(part.get("toolCallId")) or name, "type": "function", "function": function}


def _arguments(part: Fields) -> str:
    """Return what a tool was given, as JSON text: what was shown, or a terminal's command."""
    details, data = fields_of(part.get("resultDetails")), fields_of(part.get("toolSpecificData"))
    given = details.get("input") or data.get("rawInput")
    if isinstance(given, str):
        return given if given.lstrip().startswith("{") else _json({"input": given})
    line = fields_of(data.get("commandLine"))
    command = first_text((line.get("original"), data.get("command")))
    return _json(given or ({"command": command} if command else {}))


def _result(name: str, part: Fields) -> Message:
    details = fields_of(part.get("resultDetails"))
    messages = map(shown, (part.get("pastTenseMessage"), part.get("invocationMessage")))
    content = _output(details.get("output")) or first_text(messages) or ""
    failed = details.get("isError") is True or _is_denied(part.get("isConfirmed"))
    link = {"tool_call_id": text_of(part.get("toolCallId")) or name, "content": content}
    return {"role": "tool"} | link | ({"messageStatus": "error"} if failed else {})


def _output(output: Any) -> str:
    values = [output] if isinstance(output, str) else list_of(output)
    return "\n".join(filter(None, map(shown, values)))


def _is_denied(confirmed: Any) -> bool:
    return confirmed is False or fields_of(confirmed).get("type") == 0


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
