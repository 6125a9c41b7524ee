"""Turns in the databases of Kiro and Amazon Q: a prompt of the user or tool results, and an answer.

The other fields of a request are kept under one extra key, ``kiro``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields
from ..database import Layout, Rows, json_in
from ..events import (
    Noted,
    call_of,
    fields_of,
    iso_milliseconds,
    objects_of,
    telling,
    text_of,
    within,
    without,
)

CHATS = """
    SELECT key, conversation_id, value, created_at FROM conversations_v2
    ORDER BY created_at, conversation_id
"""


def _chats(rows: Rows) -> Iterator[Any]:
    for folder, name, value, created in rows.execute(CHATS):
        chat = fields_of(json_in(value))
        if chat:
            yield {"cwd": folder, "created_at": created, **chat, "conversation_id": name}
        else:
            yield Noted(None, f"the chat {name!r} is left out, it is no JSON", broken=True)


LAYOUT = Layout(frozenset({"conversations_v2.key", "conversations_v2.value"}), _chats)
"""The layout of Kiro's database."""


def is_turn(value: object) -> bool:
    """Tell whether a JSON value is a turn that can be read."""
    fields = fields_of(value)
    answer = fields_of(fields.get("assistant"))
    asked = within(fields, "user", "content")
    # nothing was asked if the agent goes on by itself
    return isinstance(asked, dict | None) and not {"Response", "ToolUse"}.isdisjoint(answer)


def messages_of(turn: Fields, number: int) -> list[Message]:
    """Return the messages of a turn: only the answer if the agent went on by itself."""
    return [*_asked(fields_of(turn.get("user"))), _answer(turn, number)]


def _asked(user: Fields) -> Iterator[Message]:
    at = telling({"timestamp": iso_milliseconds(user.get("timestamp"))})
    for told in map(fields_of, fields_of(user.get("content")).values()):
        for result in objects_of(told.get("tool_use_results")):
            yield _result(result) | at
        if text_of(told.get("prompt")):
            extra = telling(without(user, "content", "timestamp"))
            yield {"role": "user", "content": told["prompt"]} | at | telling({"kiro": extra})


def _result(told: Fields) -> Message:
    said = "\n".join(map(_said, objects_of(told.get("content"))))
    status = {"messageStatus": "error" if told.get("status") == "Error" else None}
    message: Message = {"role": "tool", "tool_call_id": told.get("tool_use_id"), "content": said}
    return message | telling(status)


def _said(part: Fields) -> str:
    told = part.get("Text", part.get("Json"))
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)


def _answer(turn: Fields, number: int) -> Message:
    told = fields_of(next(iter(turn["assistant"].values())))
    request = fields_of(turn.get("request_metadata"))
    usage = {key: held for key, held in request.items() if key.endswith("_tokens")}
    rest = without(request, *usage)
    facts = {"model": request.get("model_id"), "usage": usage, "request": rest}
    more = {
        "tool_calls": list(map(_call, objects_of(told.get("tool_uses")))),
        "timestamp": request.get("stream_end_timestamp_ms"),
        "kiro": telling(facts),
    }
    name = text_of(told.get("message_id")) or f"answer-{number}"
    said = text_of(told.get("content"))
    return {"role": "assistant", "content": said, "id": name} | telling(more)


def _call(told: Fields) -> Fields:
    arguments = told.get("args") or told.get("orig_args")
    return call_of(told.get("id"), told.get("name"), arguments)
