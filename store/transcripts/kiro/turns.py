"""Turns in the databases of Kiro and Amazon Q: a prompt of the user or tool results, and an answer.

The other fields of a request are kept under one extra key, ``kiro``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..database import Layout, SqliteConnection, parse_json_cell
from ..events import (
    NoteEvent,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_nested,
    get_objects,
    get_text,
    parse_iso_milliseconds,
)

SELECT_KIRO_CHATS = """
    SELECT key, conversation_id, value, created_at FROM conversations_v2
    ORDER BY created_at, conversation_id
"""


def _load_kiro_chats(rows: SqliteConnection) -> Iterator[Any]:
    for folder, name, value, created in rows.execute(SELECT_KIRO_CHATS):
        chat = get_fields(parse_json_cell(value))
        if chat:
            yield {"cwd": folder, "created_at": created, **chat, "conversation_id": name}
        else:
            yield NoteEvent(None, f"the chat {name!r} is left out, it is no JSON", broken=True)


KIRO_LAYOUT = Layout(
    frozenset({"conversations_v2.key", "conversations_v2.value"}), _load_kiro_chats
)
"""The layout of Kiro's database."""


def is_kiro_turn(value: object) -> bool:
    """Tell whether a JSON value is a turn that can be read."""
    fields = get_fields(value)
    answer = get_fields(fields.get("assistant"))
    asked = get_nested(fields, "user", "content")
    # nothing was asked if the agent goes on by itself
    return isinstance(asked, dict | None) and not {"Response", "ToolUse"}.isdisjoint(answer)


def parse_kiro_turn(turn: JsonFields, number: int) -> list[Message]:
    """Return the messages of a turn: only the answer if the agent went on by itself."""
    return [*_parse_turn_request(get_fields(turn.get("user"))), _parse_turn_answer(turn, number)]


def _parse_turn_request(user: JsonFields) -> Iterator[Message]:
    at = drop_empty_fields({"timestamp": parse_iso_milliseconds(user.get("timestamp"))})
    for told in map(get_fields, get_fields(user.get("content")).values()):
        for result in get_objects(told.get("tool_use_results")):
            said = "\n".join(map(_render_turn_result_part, get_objects(result.get("content"))))
            status = {"messageStatus": "error" if result.get("status") == "Error" else None}
            message: Message = {
                "role": "tool",
                "tool_call_id": result.get("tool_use_id"),
                "content": said,
            }
            yield (message | drop_empty_fields(status)) | at
        if get_text(told.get("prompt")):
            extra = drop_empty_fields(drop_keys(user, "content", "timestamp"))
            yield (
                {"role": "user", "content": told["prompt"]}
                | at
                | drop_empty_fields({"kiro": extra})
            )


def _render_turn_result_part(part: JsonFields) -> str:
    told = part.get("Text", part.get("Json"))
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)


def _parse_turn_answer(turn: JsonFields, number: int) -> Message:
    told = get_fields(next(iter(turn["assistant"].values())))
    request = get_fields(turn.get("request_metadata"))
    usage = {key: held for key, held in request.items() if key.endswith("_tokens")}
    rest = drop_keys(request, *usage)
    facts = {"model": request.get("model_id"), "usage": usage, "request": rest}
    more = {
        "tool_calls": list(map(_parse_turn_call, get_objects(told.get("tool_uses")))),
        "timestamp": request.get("stream_end_timestamp_ms"),
        "kiro": drop_empty_fields(facts),
    }
    name = get_text(told.get("message_id")) or f"answer-{number}"
    said = get_text(told.get("content"))
    return {"role": "assistant", "content": said, "id": name} | drop_empty_fields(more)


def _parse_turn_call(told: JsonFields) -> JsonFields:
    arguments = told.get("args") or told.get("orig_args")
    return build_chat_call(told.get("id"), told.get("name"), arguments)
