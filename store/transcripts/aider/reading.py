"""Chats of aider as sessions: what was typed, and what was answered.

Lines that aider marks as its own output were never sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from ...messages import Message
from ..events import (
    Event,
    Opened,
    Said,
    SessionNames,
    fields_of,
    iso_milliseconds,
    left_out,
    title_of,
)
from ..several import conversations
from ..source import Source, Value

TYPED, OUTPUT = "#### ", "> "
"""How lines begin that the user typed, and that the program said."""

ROLES = {TYPED: "user", "": "assistant"}


Marked = tuple[str, str]
"""How a line begins, and the line."""


def looks(value: Any) -> bool:
    """Tell whether a value is a chat of a history."""
    return "aider_chat" in fields_of(value)


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each chat in which something was said."""
    folder = source.path.absolute().parent
    return conversations(source, looks, "chat of a history", partial(_session, folder))


def _session(folder: Path, item: Value, names: SessionNames) -> Iterator[Event]:
    chat = fields_of(item.value)
    started = str(chat["aider_chat"])
    name = names.name(f"aider-{folder.name}-{started.replace(' ', 'T')}")
    messages = list(_messages(chat["lines"]))
    if messages:
        began = iso_milliseconds(started)
        yield Opened(name, title_of(messages), str(folder), {}, created_at=began)
        yield from map(Said, messages)
    output = sum(line.startswith(OUTPUT) for line in chat["lines"])
    if output:
        yield left_out(output, "line", f" that aider said itself in {name!r}")


def _messages(lines: list[str]) -> Iterator[Message]:
    """Yield what was said: lines of one kind in a row are one message."""
    marked = ((_mark(line), line) for line in lines)
    sent = (each for each in marked if each[0] != OUTPUT)
    for mark, group in groupby(_without_gaps(sent), key=lambda each: each[0]):
        said = [line.removeprefix(mark).rstrip() for _, line in group]
        text = "\n".join(said).strip()
        if text:
            yield {"role": ROLES[mark], "content": text}


def _mark(line: str) -> str:
    """Return how a line begins, "" where it is an answer's; what was typed may be empty."""
    if line.startswith(TYPED) or line == TYPED.rstrip():
        return TYPED
    return OUTPUT if line.startswith(OUTPUT) or line == OUTPUT.rstrip() else ""


def _without_gaps(said: Iterator[Marked]) -> Iterator[Marked]:
    """Yield lines; empty ones between what was typed are no answer."""
    before = ""
    for mark, line in said:
        is_gap = not line.strip() and before == TYPED
        if not is_gap:
            yield mark, line
            before = mark
