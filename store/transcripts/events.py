"""What a parser reports: a session begins, its next message, something to tell the user.

The words every parser shares, and the few rules they have in common (titles, session ids, what goes into a session's
metadata). Nothing here knows a file format or a store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from store.messages import content_text

TITLE_LENGTH = 80
"""Code points a title made from a prompt may have."""

METADATA_LIMIT = 100_000
"""Code points of JSON text one value may take in a session's metadata: metadata is read with every list of sessions."""


class Opened(NamedTuple):
    """A session begins: the messages that follow are its own, until the next session begins."""

    session_id: str
    title: str | None
    project_root: str | None
    metadata: dict[str, Any]


class Said(NamedTuple):
    """The next message of the session that was opened last."""

    message: dict[str, Any]


class Noted(NamedTuple):
    """Something the user should be told; ``broken`` where a part of the file could not be read (the rest is kept)."""

    line: int | None
    text: str
    broken: bool


Event = Opened | Said | Noted


class SessionNames:
    """Give every session of one file an id of its own: the same file gets the same ids each time."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._count = 0

    def name(self, wanted: str) -> str:
        """Return the id that is wanted, with the session's number in the file behind it where it is taken."""
        self._count += 1
        name = wanted if wanted not in self._taken else f"{wanted}-{self._count}"
        while name in self._taken:
            name += "+"
        self._taken.add(name)
        return name


def title_of(messages: Iterable[dict[str, Any]]) -> str | None:
    """Return the first text a user said as one line of at most 80 code points, None where no user said anything."""
    for message in messages:
        text = content_text(message.get("content")) if message.get("role") == "user" else ""
        if text.strip():
            return cut(text)
    return None


def cut(text: str) -> str:
    """Return a text as one line of at most 80 code points, for a title."""
    line = " ".join(text[: TITLE_LENGTH * 20].split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"


def said(messages: Iterable[object], *, where: str) -> Iterator[Said | Noted]:
    """Return messages exactly as they are; one that is no object with a role is noted with its place."""
    for number, message in enumerate(messages, 1):
        yield said_or_noted(message, line=None, place=f"message {number} of {where}")


def said_or_noted(message: object, *, line: int | None, place: str) -> Said | Noted:
    """Return one message exactly as it is, or a note that it is none."""
    if isinstance(message, dict) and isinstance(message.get("role"), str) and message["role"]:
        return Said(message)
    return Noted(line, f"{place} is not a message: an object with a role was expected, this is {sketch(message)}", True)


def split_metadata(record: dict[str, Any], *, without: Iterable[str]) -> tuple[dict[str, Any], list[Noted]]:
    """Return a record's other keys for the session's metadata, and a note for each that is too big for it."""
    rest = {key: value for key, value in record.items() if key not in set(without)}
    sizes = {key: len(json.dumps(value, ensure_ascii=False)) for key, value in rest.items()}
    kept = {key: value for key, value in rest.items() if sizes[key] <= METADATA_LIMIT}
    notes = [
        Noted(None, f"left out {key!r}: {sizes[key]:,} characters are too many for a session's metadata", False)
        for key in rest
        if key not in kept
    ]
    return kept, notes


def sketch(value: object) -> str:
    """Return what a JSON value looks like from outside, for an error text."""
    if isinstance(value, dict):
        keys = ", ".join(map(repr, list(value)[:6]))
        return f"an object with {keys}" if keys else "an empty object"
    if isinstance(value, list):
        first = f", the first {sketch(value[0])}" if value and not isinstance(value[0], list) else ""
        return f"a list of {len(value)}{first}"
    return f"{value!r:.60}"
