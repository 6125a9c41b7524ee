"""A conversation as a reader has gathered it: how most kinds put their sessions together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from ..records import Message
from ..text import JsonFields, wrap_in_list
from .parser_events import (
    Event,
    SessionEvent,
    SessionMessage,
    build_text_part,
    drop_empty_fields,
    find_first_text,
    find_title,
    get_fields,
    get_text,
    render_as_text,
    render_titles,
    simplify_content,
    split_metadata,
)

LARGEST_SIDE_FILE = 64 * 1024 * 1024
"""Bytes of a file beside a session, at most, that are read with it."""

PART_TYPES = ("text", "image_url", "file")
"""Types of parts that a result of a chat may have."""


class GatheredSession(NamedTuple):
    """A session of the kind ``kind``: its id, its messages, and what its file says of it.

    ``told`` is kept in the metadata under the name of the kind.
    """

    kind: str
    name: str
    said: list[SessionMessage]
    titles: Iterable[object] = ()
    root: object = None
    model: object = None
    parent: object = None
    created: int | None = None
    told: JsonFields = {}  # noqa: RUF012 - it is only read

    def events(self) -> Iterator[Event]:
        """Yield the session, its messages, and the notes; nothing where nobody said anything."""
        if not self.said:
            return
        titles = render_titles((*self.titles, find_title(each.message for each in self.said)))
        kept, notes = split_metadata(drop_empty_fields(self.told))
        links = {"model": get_text(self.model), "parent_session": get_text(self.parent)}
        metadata = drop_empty_fields({**links, self.kind: kept})
        title, root = find_first_text(titles), strip_file_scheme(self.root)
        yield SessionEvent(self.name, title, root, metadata, titles=titles, created_at=self.created)
        yield from self.said
        yield from notes


def build_chat_message(role: str, content: object, **more: object) -> Message:
    """Return a message of the chat, with those of the further fields that say something."""
    nothing = None if role == "assistant" else ""
    return {"role": role, "content": content or nothing, **drop_empty_fields(more)}


def build_result_message(
    call: object, content: object, *, failed: bool = False, **more: object
) -> Message:
    """Return the result of a call: parts or a text as they are, anything else as JSON."""
    said = "" if content is None else content
    if not (isinstance(said, list) and all(map(_is_part, said))):
        said = render_as_text(said)
    status = "error" if failed else None
    return build_chat_message(
        "tool", said, tool_call_id=get_text(call), messageStatus=status, **more
    )


def _is_part(value: object) -> bool:
    return get_fields(value).get("type") in PART_TYPES


def join_content(*contents: object) -> Any:
    """Return texts, parts, and lists of these as one content, in its simplest form."""
    parts = [
        build_text_part(each) if isinstance(each, str) else each
        for content in contents
        if content is not None
        for each in wrap_in_list(content)
        if each
    ]
    return simplify_content(parts)


def build_picture_part(media_type: object, data: object) -> JsonFields:
    """Return a picture that is told as base64."""
    url = f"data:{get_text(media_type) or 'image/png'};base64,{get_text(data) or ''}"
    return {"type": "image_url", "image_url": {"url": url}}


def strip_file_scheme(place: object) -> str | None:
    """Return a folder that is told as a path or as a ``file:`` URI; None for anything else."""
    text = get_text(place)
    if text is None or not text.startswith("file://"):
        return text
    return unquote(text.removeprefix("file://")) or None


def round_milliseconds(moment: object) -> int | None:
    """Return a moment that is told in milliseconds, None for anything else."""
    if not isinstance(moment, int | float) or isinstance(moment, bool):
        return None
    return round(moment) if 0 < moment < 2**53 else None


def load_side_file(path: Path) -> JsonFields:
    """Return the object in a file beside a session; {} where there is none that can be read."""
    return next(iter(load_side_rows(path)), {})


def load_side_rows(path: Path) -> list[JsonFields]:
    """Return the objects in a file beside a session: its lines, or the one that it is."""
    try:
        if path.stat().st_size > LARGEST_SIDE_FILE:
            return []
        text = path.read_text("utf-8", "replace")
    except OSError:
        return []
    with suppress(ValueError, RecursionError):
        return [get_fields(json.loads(text))]
    rows: list[JsonFields] = []
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            rows.append(get_fields(json.loads(line)))
    return rows
