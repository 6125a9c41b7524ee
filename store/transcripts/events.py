"""What a parser reports: a session begins, its next message, something to tell the user.

The words every parser shares, and the few rules they have in common (titles, session ids, what goes into a session's
metadata). Nothing here knows a file format or a store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from store.messages import content_text

TITLE_LENGTH = 80
"""Code points a title made from a prompt may have."""

METADATA_LIMIT = 100_000
"""Code points of JSON text one value may take in a session's metadata: metadata is read with every list of sessions."""

FACTS = ("claude_code", "codex", "openhands")
"""Keys under which parsers keep what stands around a message: what it means may change as the file grows."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def left_out(counts: Mapping[tuple[str, str], int], thing: str) -> Iterator[Noted]:
    """Return a note for each kind of thing that was left out; counts go by kind and what tells its things apart."""
    for kind in sorted({kind for kind, _ in counts}):
        subtypes = {subtype: count for (name, subtype), count in sorted(counts.items()) if name == kind}
        detail = ", ".join(f"{count} {subtype}" for subtype, count in subtypes.items() if subtype)
        text = f"left out {plural(sum(subtypes.values()), f'{kind} {thing}')}"
        yield Noted(None, f"{text} ({detail})" if detail else text, False)


def plural(count: int, thing: str) -> str:
    """Return how many of a thing there are, in words."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def milliseconds(timestamp: object) -> int | None:
    """Return an ISO time as milliseconds since the epoch, None for anything else; without a zone it is UTC."""
    if not isinstance(timestamp, str):
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


def text_of(value: object) -> str | None:
    """Return a text that says something, None for anything else."""
    return value if isinstance(value, str) and value else None


def fields_of(value: object) -> dict[str, Any]:
    """Return an object's fields; of anything else, none."""
    return value if isinstance(value, dict) else {}


def simplest(parts: list[Any]) -> object:
    """Return content parts as simply as they can be said: nothing, one text, or the parts."""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"} and isinstance(parts[0]["text"], str):
        return parts[0]["text"]
    return parts or None
