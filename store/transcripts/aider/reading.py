"""Chats of aider as sessions: the user's input and the answers.

Lines that aider marks as its own output were never sent. aider ends the user's lines and its own
lines with two blanks, a break in Markdown, which tells them from a heading or a quotation in an
answer. If an editor removed the blanks, only the marks are used.
"""

from __future__ import annotations

import re
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
    telling,
    title_of,
)
from ..several import conversations
from ..source import Source, Value

TYPED, OUTPUT = "#### ", "> "
"""How lines begin that the user typed, and that the program said."""

BREAK = "  "
"""How the lines end that aider marked itself."""

MODEL = re.compile(r"> (?:Main model|Models?): (\S+)")
"""The model that answered; older versions name a second one after it."""

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
    lines = chat["lines"]
    are_ended = any(_mark(line) and line.endswith(BREAK) for line in lines)
    marked = [
        ("" if are_ended and not line.endswith(BREAK) else _mark(line), line) for line in lines
    ]
    messages = list(_messages(marked))
    if messages:
        began = iso_milliseconds(started)
        metadata = telling({"model": _model(chat["lines"])})
        yield Opened(name, title_of(messages), str(folder), metadata, created_at=began)
        yield from map(Said, messages)
    output = sum(mark == OUTPUT and line.strip() != OUTPUT.strip() for mark, line in marked)
    if output:
        yield left_out(output, "line", f" that aider said itself in {name!r}")


def _model(lines: list[str]) -> str | None:
    found = filter(None, map(MODEL.match, lines))
    return next((match[1].rstrip(",") for match in found), None)


def _messages(marked: list[Marked]) -> Iterator[Message]:
    """Yield the messages: consecutive lines of one kind are one message."""
    sent = (each for each in marked if each[0] != OUTPUT)
    for mark, group in groupby(_without_gaps(sent), key=lambda each: each[0]):
        said = [line.removeprefix(mark).rstrip() for _, line in group]
        text = "\n".join(said).strip()
        if text:
            yield {"role": ROLES[mark], "content": text}


def _mark(line: str) -> str:
    """Return the mark of a line, "" if it belongs to an answer; a typed line may be empty."""
    if line.startswith(TYPED) or line == TYPED.rstrip():
        return TYPED
    return OUTPUT if line.startswith(OUTPUT) or line == OUTPUT.rstrip() else ""


def _without_gaps(said: Iterator[Marked]) -> Iterator[Marked]:
    """Yield the lines without empty lines after a typed line, which are not an answer."""
    before = ""
    for mark, line in said:
        is_gap = not line.strip() and before == TYPED
        if not is_gap:
            yield mark, line
            before = mark
