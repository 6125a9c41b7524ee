"""Rows of a Codex rollout, which `codex resume` goes on with.

Its loader takes the id of the first ``session_meta``, and leaves out each row that it cannot read.
Items go to the model, events to the screen; a list of sessions shows those with an event of a user.
A row of a compaction has the items that take the place of all before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...records import Message, extract_content_text
from ...text import JsonFields
from ..parser_events import build_text_part
from .sessions import TimedMessage, WritableLine, WritableSession, render_iso_moment

CODEX_VERSION = "0.140.0"
"""The version of the program whose rows these are."""
SCREEN_EVENT_TYPES = {"user": "user_message", "assistant": "agent_message"}
"""The role of a message → the type of the event that shows it."""
ROLLOUT_PART_TYPES = ("input_text", "output_text", "input_image")
"""Types of parts that the program has."""


def build_rollout_rows(about: WritableSession, told: WritableLine) -> Iterator[JsonFields]:
    """Yield the rows of a rollout, of items as the Responses API takes them."""
    yield _build_rollout_row(
        about.began,
        "session_meta",
        {
            "id": str(about.id),
            "timestamp": render_iso_moment(about.began),
            "cwd": about.cwd,
            "originator": "convostore",
            "cli_version": CODEX_VERSION,
            "source": "cli",
        },
    )
    if about.title:
        renamed = {"thread_id": str(about.id), "thread_name": about.title}
        yield _build_rollout_row(
            about.began, "event_msg", {"type": "thread_name_updated", **renamed}
        )
    yield from _build_item_rows(told.hidden)
    if told.stands:
        items = [*map(_convert_codex_item, told.stands)]
        words = [
            extract_content_text(each["content"]) for each in items if each.get("role") == "user"
        ]
        yield _build_rollout_row(
            told.hidden_until,
            "compacted",
            {"message": "\n\n".join(filter(None, words)), "replacement_history": items},
        )
    yield from _build_item_rows(told.said)


def _build_item_rows(said: Iterable[TimedMessage]) -> Iterator[JsonFields]:
    for moment, item in said:
        taken = _convert_codex_item(item)
        yield _build_rollout_row(moment, "response_item", taken)
        if taken["type"] == "message" and taken["role"] in SCREEN_EVENT_TYPES:
            event = {
                "type": SCREEN_EVENT_TYPES[taken["role"]],
                "message": extract_content_text(taken["content"]),
            }
            pictures: JsonFields = {"images": [], "local_images": [], "text_elements": []}
            yield _build_rollout_row(
                moment, "event_msg", event | pictures if taken["role"] == "user" else event
            )


def build_rollout_path(about: WritableSession) -> str:
    """Return the place of a rollout in the program's folder of sessions."""
    told = render_iso_moment(about.began)
    day = told[:10].replace("-", "/")
    moment = told[:19].replace(":", "-")
    return f"{day}/rollout-{moment}-{about.id}.jsonl"


def _build_rollout_row(moment: int, kind: str, payload: JsonFields) -> JsonFields:
    return {"timestamp": render_iso_moment(moment), "type": kind, "payload": payload}


def _convert_codex_item(item: Message) -> JsonFields:
    """Return an item in the shape in which the program's own is."""
    kind = item.get("type", "message")
    if kind == "message":
        role = "developer" if item["role"] == "system" else item["role"]
        return {
            "type": kind,
            "role": role,
            "content": _convert_codex_content(role, item["content"]),
        }
    if kind == "reasoning":
        return {"summary": [], "content": None, "encrypted_content": None, **item}
    if isinstance(item.get("output"), list):
        return {**item, "output": _convert_codex_content("user", item["output"])}
    return dict(item)


def _convert_codex_content(role: str, content: Any) -> list[JsonFields]:
    """Return what somebody said as parts; what the program has no part for is named."""
    kind = "output_text" if role == "assistant" else "input_text"
    parts = [build_text_part(content)] if isinstance(content, str) else content
    codex_parts: list[JsonFields] = []
    for part in parts:
        told = part.get("type")
        if told == "input_image" and kind == "input_text":
            codex_part = part
        elif isinstance(part.get("text"), str):
            codex_part = {"type": kind, "text": part["text"]}
        else:
            codex_part = {"type": kind, "text": f"[{told} left out]"}
        codex_parts.append(codex_part)
    return codex_parts
