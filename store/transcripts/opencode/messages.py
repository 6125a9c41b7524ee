"""Translate a message of opencode to messages of the chat: each step of an answer, and its results.

A call and its result are one part of the message. Its other fields are kept under one extra key,
``opencode``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import fields_of, list_of, simplest_content, telling, text_of, text_part, without

ROLES = ("user", "assistant")

STEP, STEP_END = "step-start", "step-finish"

COMPACTING = "What did we do so far?"
"""The text that the program sends if its user's message asks for a compaction."""

COST = ("tokens", "cost")

USED = ("text", "reasoning", "tool", "file", "compaction", STEP, STEP_END)
"""Types of parts that are read."""


def is_message(value: object) -> bool:
    """Tell whether a JSON value is a message that can be read."""
    fields = fields_of(value)
    role = fields_of(fields.get("info")).get("role")
    return role in ROLES and isinstance(fields.get("parts"), list)


def parts_of(message: Fields) -> list[Fields]:
    """Return a message's parts."""
    return list(filter(None, map(fields_of, list_of(message.get("parts")))))


def messages_of(name: str, told: Fields) -> list[Message]:
    """Return the chat messages of one message; the first has its id and its other fields."""
    info, parts = told["info"], parts_of(told)
    if info["role"] == "user":
        made = [_question(parts)]
    else:
        made = list(chain.from_iterable(map(_answered, _steps(parts))))
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
    extra = telling(without(info, "id", "sessionID", "role", "tokens", "cost"))
    made[0]["opencode"] = extra | made[0].get("opencode", {})
    _add_cost(made, info)
    return [_at(fields_of(info.get("time")).get("created")) | message for message in made]


def _at(moment: Any) -> Fields:
    return {"timestamp": moment} if type(moment) is int and 0 < moment < 2**53 else {}


def _question(parts: list[Fields]) -> Message:
    content = [_part(part) for part in parts if _is_sent(part)]
    files = [part for part in parts if part.get("type") == "file" and not _is_sent(part)]
    said: Message = {"role": "user", "content": simplest_content(content) or ""}
    return said | telling({"opencode": telling({"files": files})})


def _is_sent(part: Fields) -> bool:
    """Tell whether a part goes to the model; of files only pictures do, others go as text."""
    if part.get("type") == "file":
        kind = text_of(part.get("mime")) or ""
        return kind.startswith("image/") and "url" in part
    return part.get("type") in ("text", "compaction") and part.get("ignored") is not True


def _part(part: Fields) -> Fields:
    if part["type"] == "file":
        return {"type": "image_url", "image_url": {"url": part["url"]}}
    return text_part(
        COMPACTING if part["type"] == "compaction" else text_of(part.get("text")) or ""
    )


def _steps(parts: list[Fields]) -> list[list[Fields]]:
    """Return the parts of each step; there is at least one step."""
    steps: list[list[Fields]] = [[]]
    for part in parts:
        if part.get("type") == STEP and steps[-1]:
            steps.append([])
        if part.get("type") != STEP:
            steps[-1].append(part)
    return steps


def _answered(parts: list[Fields]) -> Iterator[Message]:
    """Yield the answer of a step, then the results of its calls."""
    tools = [part for part in parts if part.get("type") == "tool"]
    more = {
        "tool_calls": list(map(_call, tools)),
        "reasoning_content": "\n\n".join(_texts(parts, "reasoning")),
        "opencode": _cost(parts),
    }
    text = "\n\n".join(_texts(parts, "text"))
    yield {"role": "assistant", "content": text or None} | telling(more)
    yield from (_result(part) for part in tools if _state(part).get("status") in ENDED)


def _texts(parts: list[Fields], kind: str) -> Iterator[str]:
    meant = (part for part in parts if part.get("type") == kind)
    return filter(None, (text_of(part.get("text")) for part in meant))


def _cost(parts: list[Fields]) -> Fields:
    """Return the tokens and the cost of a step, from the part that ends it."""
    ends = [part for part in parts if part.get("type") == STEP_END]
    return {key: end.get(key) for end in ends[-1:] for key in COST}


def _add_cost(made: list[Message], info: Fields) -> None:
    """Add the model to each answer, and the message's tokens if its steps have none."""
    answers = [message for message in made if message["role"] == "assistant"]
    told = {key: info[key] for key in COST if key in info}
    model = telling({"modelID": info.get("modelID"), "providerID": info.get("providerID")})
    if answers and not any("tokens" in answer.get("opencode", {}) for answer in answers):
        answers[-1]["opencode"] = answers[-1].get("opencode", {}) | told
    for answer in answers:
        answer["opencode"] = model | answer.get("opencode", {})


ENDED = ("completed", "error")


def _state(part: Fields) -> Fields:
    return fields_of(part.get("state"))


def _call(part: Fields) -> Fields:
    arguments = json.dumps(_state(part).get("input") or {}, ensure_ascii=False)
    function = {"name": text_of(part.get("tool")) or "", "arguments": arguments}
    return {"id": _call_id(part), "type": "function", "function": function}


def _call_id(part: Fields) -> str:
    return text_of(part.get("callID")) or text_of(part.get("id")) or ""


def _result(part: Fields) -> Message:
    state = _state(part)
    failed = state["status"] == "error"
    said = text_of(state.get("error" if failed else "output")) or ""
    message: Message = {"role": "tool", "tool_call_id": _call_id(part), "content": said}
    extra = telling(without(state, "status", "input", "output", "error"))
    more = {"messageStatus": "error" if failed else None, "opencode": extra}
    ended = fields_of(state.get("time")).get("end")
    return message | _at(ended) | telling(more)
