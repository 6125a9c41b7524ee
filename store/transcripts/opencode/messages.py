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
from ...text import JsonFields
from ..events import (
    build_text_part,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
    simplify_content,
)

OPENCODE_ROLES = ("user", "assistant")

STEP, STEP_END = "step-start", "step-finish"

OPENCODE_COMPACTION_PROMPT = "What did we do so far?"
"""The text that the program sends if its user's message asks for a compaction."""

OPENCODE_COST_KEYS = ("tokens", "cost")

OPENCODE_PART_TYPES = ("text", "reasoning", "tool", "file", "compaction", STEP, STEP_END)
"""Types of parts that are read."""


def is_opencode_message(value: object) -> bool:
    """Tell whether a JSON value is a message that can be read."""
    fields = get_fields(value)
    role = get_fields(fields.get("info")).get("role")
    return role in OPENCODE_ROLES and isinstance(fields.get("parts"), list)


def list_opencode_parts(message: JsonFields) -> list[JsonFields]:
    """Return a message's parts."""
    return list(filter(None, map(get_fields, get_list(message.get("parts")))))


def parse_opencode_message(name: str, told: JsonFields) -> list[Message]:
    """Return the chat messages of one message; the first has its id and its other fields."""
    info, parts = told["info"], list_opencode_parts(told)
    if info["role"] == "user":
        content = [_parse_opencode_part(part) for part in parts if _is_part_for_model(part)]
        files = [
            part for part in parts if part.get("type") == "file" and not _is_part_for_model(part)
        ]
        said: Message = {"role": "user", "content": simplify_content(content) or ""}
        made = [(said | drop_empty_fields({"opencode": drop_empty_fields({"files": files})}))]
    else:
        made = list(chain.from_iterable(map(_parse_opencode_step, _split_opencode_steps(parts))))
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
    extra = drop_empty_fields(drop_keys(info, "id", "sessionID", "role", "tokens", "cost"))
    made[0]["opencode"] = extra | made[0].get("opencode", {})
    _add_opencode_cost(made, info)
    return [
        _build_timestamp_field(get_fields(info.get("time")).get("created")) | message
        for message in made
    ]


def _build_timestamp_field(moment: Any) -> JsonFields:
    return {"timestamp": moment} if type(moment) is int and 0 < moment < 2**53 else {}


def _is_part_for_model(part: JsonFields) -> bool:
    """Tell whether a part goes to the model; of files only pictures do, others go as text."""
    if part.get("type") == "file":
        kind = get_text(part.get("mime")) or ""
        return kind.startswith("image/") and "url" in part
    return part.get("type") in ("text", "compaction") and part.get("ignored") is not True


def _parse_opencode_part(part: JsonFields) -> JsonFields:
    if part["type"] == "file":
        return {"type": "image_url", "image_url": {"url": part["url"]}}
    return build_text_part(
        OPENCODE_COMPACTION_PROMPT
        if part["type"] == "compaction"
        else get_text(part.get("text")) or ""
    )


def _split_opencode_steps(parts: list[JsonFields]) -> list[list[JsonFields]]:
    """Return the parts of each step; there is at least one step."""
    steps: list[list[JsonFields]] = [[]]
    for part in parts:
        if part.get("type") == STEP and steps[-1]:
            steps.append([])
        if part.get("type") != STEP:
            steps[-1].append(part)
    return steps


def _parse_opencode_step(parts: list[JsonFields]) -> Iterator[Message]:
    """Yield the answer of a step, then the results of its calls."""
    tools = [part for part in parts if part.get("type") == "tool"]
    more = {
        "tool_calls": list(map(_parse_opencode_call, tools)),
        "reasoning_content": "\n\n".join(_list_opencode_texts(parts, "reasoning")),
        "opencode": _find_step_cost(parts),
    }
    text = "\n\n".join(_list_opencode_texts(parts, "text"))
    yield {"role": "assistant", "content": text or None} | drop_empty_fields(more)
    yield from (
        _parse_opencode_result(part)
        for part in tools
        if _find_part_state(part).get("status") in ENDED_CALL_STATES
    )


def _list_opencode_texts(parts: list[JsonFields], kind: str) -> Iterator[str]:
    meant = (part for part in parts if part.get("type") == kind)
    return filter(None, (get_text(part.get("text")) for part in meant))


def _find_step_cost(parts: list[JsonFields]) -> JsonFields:
    """Return the tokens and the cost of a step, from the part that ends it."""
    ends = [part for part in parts if part.get("type") == STEP_END]
    return {key: end.get(key) for end in ends[-1:] for key in OPENCODE_COST_KEYS}


def _add_opencode_cost(made: list[Message], info: JsonFields) -> None:
    """Add the model to each answer, and the message's tokens if its steps have none."""
    answers = [message for message in made if message["role"] == "assistant"]
    told = {key: info[key] for key in OPENCODE_COST_KEYS if key in info}
    model = drop_empty_fields(
        {"modelID": info.get("modelID"), "providerID": info.get("providerID")}
    )
    if answers and not any("tokens" in answer.get("opencode", {}) for answer in answers):
        answers[-1]["opencode"] = answers[-1].get("opencode", {}) | told
    for answer in answers:
        answer["opencode"] = model | answer.get("opencode", {})


ENDED_CALL_STATES = ("completed", "error")


def _find_part_state(part: JsonFields) -> JsonFields:
    return get_fields(part.get("state"))


def _parse_opencode_call(part: JsonFields) -> JsonFields:
    arguments = json.dumps(_find_part_state(part).get("input") or {}, ensure_ascii=False)
    function = {"name": get_text(part.get("tool")) or "", "arguments": arguments}
    return {"id": _find_opencode_call_id(part), "type": "function", "function": function}


def _find_opencode_call_id(part: JsonFields) -> str:
    return get_text(part.get("callID")) or get_text(part.get("id")) or ""


def _parse_opencode_result(part: JsonFields) -> Message:
    state = _find_part_state(part)
    failed = state["status"] == "error"
    said = get_text(state.get("error" if failed else "output")) or ""
    message: Message = {
        "role": "tool",
        "tool_call_id": _find_opencode_call_id(part),
        "content": said,
    }
    extra = drop_empty_fields(drop_keys(state, "status", "input", "output", "error"))
    more = {"messageStatus": "error" if failed else None, "opencode": extra}
    ended = get_fields(state.get("time")).get("end")
    return message | _build_timestamp_field(ended) | drop_empty_fields(more)
