"""What a chat API refuses of a request.

The strictest reading of its rules, written without looking at the store's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

Message = dict[str, Any]

PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}
"""The roles of the chat API and the content parts that each may have."""

KEYS = {role: {"role", "content", "name"} for role in PARTS} | {
    "assistant": {
        *("role", "content", "name", "tool_calls", "refusal", "audio"),
        *("reasoning_content", "reasoning", "reasoning_details", "extra_content"),
    },
    "tool": {"role", "content", "tool_call_id"},
}


def refusals(messages: list[Message], *, open_from: int | None = None) -> list[str]:
    """Return why an API would refuse a request.

    Calls from the place ``open_from`` on may wait for their results.
    """
    found = [
        f"{place}: {problem}"
        for place, message in enumerate(messages)
        for problem in _wrong(message)
    ]
    place = 0
    while place < len(messages):
        wanted = [call["id"] for call in messages[place].get("tool_calls", [])]
        if messages[place]["role"] == "tool":
            found.append(f"{place}: a result of no call")
        following = takewhile(lambda message: message["role"] == "tool", messages[place + 1 :])
        answers = [message.get("tool_call_id") for message in following] if wanted else []
        if open_from is not None and place >= open_from:
            wanted = [call_id for call_id in wanted if call_id in answers]
        if wanted != answers:
            found.append(f"{place}: calls {wanted}, results {answers}")
        place += 1 + len(answers)
    return found


def _wrong(message: Message) -> Iterator[str]:
    role = message.get("role")
    if role not in PARTS:
        yield f"role {role!r}"
        return
    if set(message) - KEYS[role]:
        yield f"keys {sorted(message)}"
    try:
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        yield f"cannot be sent: {error}"
    yield from _wrong_content(role, message)
    if "name" in message and not (isinstance(message["name"], str) and message["name"]):
        yield f"name {message['name']!r}"
    if role == "tool" and not (
        isinstance(message.get("tool_call_id"), str) and message["tool_call_id"]
    ):
        yield "no tool_call_id"
    if "tool_calls" in message:
        yield from _wrong_calls(message["tool_calls"])


def _wrong_content(role: str, message: Message) -> Iterator[str]:
    content = message.get("content")
    if content is None and not (message.get("tool_calls") or message.get("audio")):
        yield "no content"
    if content is not None and not isinstance(content, str | list):
        yield f"content is {type(content).__name__}"
    if content == []:
        yield "no parts"
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in PARTS[role]:
            yield f"part {part!r} of {role}"
        elif (
            part.keys() != {"type", kind}
            or not isinstance(part[kind], str | dict)
            or part[kind] == {}
        ):
            yield f"part {part!r}"


def _wrong_calls(made: list[Message]) -> Iterator[str]:
    if not made:
        yield "no calls in tool_calls"
    for call in made:
        kind = call.get("type")
        if kind not in ASKED or call.keys() - {"extra_content"} != {"id", "type", kind}:
            yield f"call {call!r}"
            continue
        if not call["id"] or not isinstance(call["id"], str):
            yield f"call id {call['id']!r}"
        held = call[kind]
        if held.keys() != {"name", ASKED[kind]} or not held["name"]:
            yield f"{kind} {held!r}"
        if not all(isinstance(each, str) for each in held.values()):
            yield f"{kind} {held!r}"
    if len({call["id"] for call in made}) < len(made):
        yield "two calls with one id"


ASKED = {"function": "arguments", "custom": "input"}
"""The types of calls, and the key under which each says what it asks for."""
