"""Rows of a Codex rollout, which `codex resume` goes on with.

Its loader takes the id of the first ``session_meta``, and leaves out each row that it cannot read.
Items go to the model, events to the screen; a list of sessions shows those with an event of a user.
A row of a compaction has the items that take the place of all before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...messages import Message, content_text
from ...text import Fields
from ..events import text_part
from .about import About, Timed, Told, iso

VERSION = "0.140.0"
"""The version of the program whose rows these are."""
EVENTS = {"user": "user_message", "assistant": "agent_message"}
"""Who says something → the type of the event that shows it."""
TAKEN = ("input_text", "output_text", "input_image")
"""Types of parts that the program has."""


def codex(about: About, told: Told) -> Iterator[Fields]:
    """Yield the rows of a rollout, of items as the Responses API takes them."""
    yield _row(about.began, "session_meta", _meta(about))
    if about.title:
        renamed = {"thread_id": str(about.id), "thread_name": about.title}
        yield _row(about.began, "event_msg", {"type": "thread_name_updated", **renamed})
    yield from _items(told.hidden)
    if told.stands:
        yield _row(told.hidden_until, "compacted", _compacted(told.stands))
    yield from _items(told.said)


def _items(said: Iterable[Timed]) -> Iterator[Fields]:
    for moment, item in said:
        taken = _taken(item)
        yield _row(moment, "response_item", taken)
        if taken["type"] == "message" and taken["role"] in EVENTS:
            event = {"type": EVENTS[taken["role"]], "message": content_text(taken["content"])}
            pictures: Fields = {"images": [], "local_images": [], "text_elements": []}
            yield _row(
                moment, "event_msg", (event | pictures if taken["role"] == "user" else event)
            )


def rollout_name(about: About) -> str:
    """Return the place of a rollout in the program's folder of sessions."""
    told = iso(about.began)
    day = told[:10].replace("-", "/")
    moment = told[:19].replace(":", "-")
    return f"{day}/rollout-{moment}-{about.id}.jsonl"


def _row(moment: int, kind: str, payload: Fields) -> Fields:
    return {"timestamp": iso(moment), "type": kind, "payload": payload}


def _meta(about: About) -> Fields:
    return {
        "id": str(about.id),
        "timestamp": iso(about.began),
        "cwd": about.cwd,
        "originator": "convostore",
        "cli_version": VERSION,
        "source": "cli",
    }


def _compacted(stands: Sequence[Message]) -> Fields:
    """Return what takes the place of all before it: its items, and in words for older programs."""
    items = [*map(_taken, stands)]
    words = [content_text(each["content"]) for each in items if each.get("role") == "user"]
    return {"message": "\n\n".join(filter(None, words)), "replacement_history": items}


def _taken(item: Message) -> Fields:
    """Return an item in the shape in which the program's own is."""
    kind = item.get("type", "message")
    if kind == "message":
        role = "developer" if item["role"] == "system" else item["role"]
        return {"type": kind, "role": role, "content": _parts(role, item["content"])}
    if kind == "reasoning":
        return {"summary": [], "content": None, "encrypted_content": None, **item}
    if isinstance(item.get("output"), list):
        return {**item, "output": _parts("user", item["output"])}
    return dict(item)


def _parts(role: str, content: Any) -> list[Fields]:
    """Return what somebody said as parts; what the program has no part for is named."""
    kind = "output_text" if role == "assistant" else "input_text"
    parts = [text_part(content)] if isinstance(content, str) else content
    return [_part(part, kind) for part in parts]


def _part(part: Fields, kind: str) -> Fields:
    told = part.get("type")
    if told == "input_image" and kind == "input_text":
        return part
    if isinstance(part.get("text"), str):
        return {"type": kind, "text": part["text"]}
    return {"type": kind, "text": f"[{told} left out]"}
