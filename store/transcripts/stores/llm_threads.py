"""What llm logs from 0.32 on: messages of parts, each behind another one, and threads to them.

A thread is a session; one that was forked off another continues it behind what they share.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import Fields
from ..database import Rows, json_in
from ..events import (
    Event,
    Opened,
    Said,
    SessionNames,
    Stem,
    call_of,
    fields_of,
    first_text,
    iso_milliseconds,
    joined,
    list_of,
    objects_of,
    simplest_content,
    telling,
    text_of,
    text_part,
    title_in,
    without,
)
from ..trees import ancestors

THREADS = "SELECT * FROM threads WHERE tip_message_hash IS NOT NULL ORDER BY datetime_utc, id"
PARENTS = "SELECT hash, parent_hash FROM messages"
MESSAGE = "SELECT role, provider_metadata FROM messages WHERE hash = ?"
PARTS = "SELECT type, text, payload FROM parts WHERE message_hash = ? ORDER BY position"
TURNS = "SELECT * FROM turns WHERE thread_id = ? ORDER BY datetime_utc, id"
FRAGMENT = "SELECT content FROM fragments WHERE id = ?"
ATTACHMENT = "SELECT type, url, path, content FROM attachments WHERE id = ?"

KEPT = ("model", "resolved_model", "duration_ms", "input_tokens", "output_tokens", "reasoning")
"""What the log tells of a request."""


def threads_in(rows: Rows) -> Iterator[Fields]:
    """Yield each thread: its messages and turns, and how many of them another thread has.

    A message's hash covers what is before it, so two threads share only how they begin.
    """
    parents = dict(map(tuple, rows.execute(PARENTS)))
    lines: dict[str, list[str]] = {}
    for thread in map(dict, rows.execute(THREADS).fetchall()):
        line = [*ancestors(parents, thread["tip_message_hash"])][::-1]
        lines[thread["id"]] = line
        other = lines.get(thread["forked_from"] or "", [])
        turns = map(dict, rows.execute(TURNS, (thread["id"],)))
        yield {
            "thread": thread,
            "messages": [_message(rows, name) for name in line],
            "turns": {turn["tip_message_hash"]: turn for turn in turns},
            "shared": len({*line} & {*other}),
        }


def _message(rows: Rows, name: str) -> Fields:
    (row,) = rows.execute(MESSAGE, (name,))
    held = rows.execute(PARTS, (name,)).fetchall()
    parts = [_part(rows, part) for part in held]
    extra = {"provider_metadata": json_in(row["provider_metadata"])}
    return {"hash": name, "role": row["role"], "parts": parts, **extra}


def _part(rows: Rows, row: Any) -> Fields:
    """Return a part with the texts and the files that it names in their places."""
    part = {**fields_of(json_in(row["payload"])), "type": row["type"]}
    if row["text"] is not None:
        part["text"] = row["text"]
    if "text_ref" in part:
        pieces = objects_of(part.pop("text_ref"))
        part["text"] = "".join(_piece(rows, each) for each in pieces)
    files = [part.get("attachment"), *list_of(part.get("attachments"))]
    names = [fields_of(each).get("id") for each in files]
    found = [_file(rows, name) for name in names if name]
    return without(part, "attachment", "attachments") | telling({"files": found})


def _piece(rows: Rows, piece: Fields) -> str:
    if "fragment" not in piece:
        return text_of(piece.get("literal")) or ""
    found = rows.execute(FRAGMENT, (piece["fragment"],)).fetchone()
    return found[0] if found else ""


def _file(rows: Rows, name: object) -> Fields:
    """Return a file as a part: a picture as ``image_url``, any other with what is told of it."""
    row = rows.execute(ATTACHMENT, (name,)).fetchone()
    told = {"type": "attachment", "id": name}
    if row is None:
        return told
    url = row["url"]
    if row["content"] is not None:
        url = f"data:{row['type']};base64,{base64.b64encode(row['content']).decode()}"
    if url and str(row["type"]).startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return told | telling({"mime_type": row["type"], "url": url, "path": row["path"]})


def thread_events(fields: Fields, names: SessionNames) -> Iterator[Event]:
    """Return the session of a thread, and the messages that are its own."""
    thread, turns = fields_of(fields["thread"]), fields_of(fields.get("turns"))
    shared = fields.get("shared")
    told = _dated(fields, turns)
    end = shared if isinstance(shared, int) else 0
    before, own = [*chain(*told[:end])], chain(*told[end:])
    models = (fields_of(turn).get("model") for turn in turns.values())
    title = title_in([thread.get("name")])
    name = names.name(text_of(thread.get("id")))
    origin = text_of(thread.get("forked_from"))
    stem = Stem(origin, len(before)) if origin and before else None
    link = {"parent_session": stem.session_id, "forked_at": stem.after} if stem else {}
    metadata = telling({"model": first_text(models)}) | link
    yield Opened(name, title, None, metadata, stem=stem)
    yield from map(Said, own)


def _dated(fields: Fields, turns: Fields) -> list[list[Message]]:
    """Return what each message says, with the moment of the turn in which it was said."""
    made: list[list[Message]] = []
    moment: int | None = None
    for each in reversed(objects_of(fields.get("messages"))):
        turn = fields_of(turns.get(str(each.get("hash"))))
        moment = iso_milliseconds(turn.get("datetime_utc")) or moment
        made.append(_said(each, turn, moment))
    return made[::-1]


def _said(told: Fields, turn: Fields, moment: int | None) -> list[Message]:
    """Return a message as those of the chat: each result of a tool, then the rest of it."""
    parts = objects_of(told.get("parts"))
    results = [_result(part) for part in parts if part.get("type") == "tool_result"]
    rest = [part for part in parts if part.get("type") != "tool_result"]
    messages = [*results, _spoken(told, rest, turn)] if rest or not results else results
    name = text_of(told.get("hash")) or ""
    names = [*(f"{name}-{number}" for number in range(1, len(messages))), name]
    when = telling({"timestamp": moment})
    named = zip(messages, names, strict=True)
    return [each | {"id": name} | when for each, name in named]


def _spoken(told: Fields, parts: list[Fields], turn: Fields) -> Message:
    calls = [part for part in parts if part.get("type") == "tool_call"]
    said = [each for part in parts for each in _content(part)]
    thoughts = joined(part.get("text") for part in parts if part.get("type") == "reasoning")
    role = text_of(told.get("role")) or "user"
    facts = {key: turn.get(key) for key in KEPT}
    beside = [part["provider_metadata"] for part in parts if part.get("provider_metadata")]
    facts |= {"provider_metadata": told.get("provider_metadata"), "parts": beside}
    message: Message = {"role": role, "content": simplest_content(said)}
    if role != "assistant":
        message["content"] = message["content"] or ""
    more = {"tool_calls": list(map(_call, calls)), "reasoning_content": thoughts}
    return message | telling({**more, "llm": telling(facts)})


def _content(part: Fields) -> list[Fields]:
    """Return what a part is of a message's content."""
    files = objects_of(part.get("files"))
    text = text_of(part.get("text")) if part.get("type") == "text" else None
    return [text_part(text), *files] if text else files


def _call(part: Fields) -> Fields:
    return call_of(part.get("tool_call_id"), part.get("name"), part.get("arguments"))


def _result(part: Fields) -> Message:
    link = {"tool_call_id": part.get("tool_call_id"), "name": part.get("name")}
    failed = {"messageStatus": "error"} if part.get("exception") else {}
    text = text_part(text_of(part.get("output")) or "")
    content = simplest_content([text, *objects_of(part.get("files"))])
    return {"role": "tool", "content": content, **telling(link), **failed}
