"""Histories of aider, which are Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from ..records import FilePath, Message
from .events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    find_title,
    get_fields,
    note_omission,
    parse_iso_milliseconds,
)
from .source import SourceValue, TranscriptSource, parse_conversations

__all__ = ["AIDER_HISTORY_NAME", "AiderHistory", "is_aider_chat", "is_aider_history", "parse_aider"]

AIDER_HISTORY_NAME = ".aider.chat.history.md"
"""How the file is named, in the folder that was worked in."""

CHAT_HEADING = "# aider chat started at "
"""How the first line of a chat begins; the time follows."""


def is_aider_history(path: FilePath) -> bool:
    """Tell whether a file is such a history, by its first line that says something."""
    with Path(path).open("rb") as file:
        first = file.read(200).lstrip(b"\xef\xbb\xbf \r\n")
    return first.startswith(CHAT_HEADING.encode())


class AiderHistory(TranscriptSource):
    """A history: a sequence of chats, each of which begins with a line of its own."""

    kind = "aider"

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self.problem = None
        self.report_to(None)

    def values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the chats, each with its lines; bad UTF-8 is replaced."""
        self.rows = consumed = 0
        began: int | None = None
        lines: list[str] = []
        with self.path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                consumed += len(raw)
                self.limits.check_time()
                line = raw.decode("utf-8-sig", "replace").rstrip("\r\n")
                self.rows += bool(line.strip())
                if line.startswith(CHAT_HEADING):
                    yield from _build_chat_value(began, lines)
                    began, lines = number, []
                lines.append(line)
        yield from _build_chat_value(began, lines)
        self._progress(consumed)


def _build_chat_value(began: int | None, lines: list[str]) -> Iterator[SourceValue]:
    if began is not None:
        started = lines[0].removeprefix(CHAT_HEADING).strip()
        yield SourceValue(began, {"aider_chat": started, "lines": lines[1:]})


TYPED, OUTPUT = "#### ", "> "
"""How lines begin that the user typed, and that the program said."""

MARKED_LINE_END = "  "
"""How the lines end that aider marked itself."""

MODEL_LINE = re.compile(r"> (?:Main model|Models?): (\S+)")
"""The model that answered; older versions name a second one after it."""

ROLE_BY_MARK = {TYPED: "user", "": "assistant"}

MarkedLine = tuple[str, str]
"""How a line begins, and the line."""


def is_aider_chat(value: Any) -> bool:
    """Tell whether a value is a chat of a history."""
    return "aider_chat" in get_fields(value)


def parse_aider(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each chat in which something was said."""
    folder = source.path.absolute().parent
    return parse_conversations(
        source, is_aider_chat, "chat of a history", partial(_parse_aider_session, folder)
    )


def _parse_aider_session(folder: Path, item: SourceValue, names: SessionNames) -> Iterator[Event]:
    chat = get_fields(item.value)
    started = str(chat["aider_chat"])
    name = names.name(f"aider-{folder.name}-{started.replace(' ', 'T')}")
    lines = chat["lines"]
    are_ended = any(_find_line_mark(line) and line.endswith(MARKED_LINE_END) for line in lines)
    marked = [
        ("" if are_ended and not line.endswith(MARKED_LINE_END) else _find_line_mark(line), line)
        for line in lines
    ]
    messages = list(_join_marked_lines(marked))
    if messages:
        began = parse_iso_milliseconds(started)
        rows = chat["lines"]
        found = filter(None, map(MODEL_LINE.match, rows))
        metadata = drop_empty_fields(
            {"model": next((match[1].rstrip(",") for match in found), None)}
        )
        yield SessionEvent(name, find_title(messages), str(folder), metadata, created_at=began)
        yield from map(SessionMessage, messages)
    output = sum(mark == OUTPUT and line.strip() != OUTPUT.strip() for mark, line in marked)
    if output:
        yield note_omission(output, "line", f" that aider said itself in {name!r}")


def _join_marked_lines(marked: list[MarkedLine]) -> Iterator[Message]:
    """Yield the messages: consecutive lines of one kind are one message."""
    sent = (each for each in marked if each[0] != OUTPUT)
    for mark, group in groupby(_drop_gaps(sent), key=lambda each: each[0]):
        said = [line.removeprefix(mark).rstrip() for _, line in group]
        text = "\n".join(said).strip()
        if text:
            yield {"role": ROLE_BY_MARK[mark], "content": text}


def _find_line_mark(line: str) -> str:
    """Return the mark of a line, "" if it belongs to an answer; a typed line may be empty."""
    if line.startswith(TYPED) or line == TYPED.rstrip():
        return TYPED
    return OUTPUT if line.startswith(OUTPUT) or line == OUTPUT.rstrip() else ""


def _drop_gaps(said: Iterator[MarkedLine]) -> Iterator[MarkedLine]:
    """Yield the lines without empty lines after a typed line, which are not an answer."""
    before = ""
    for mark, line in said:
        is_gap = not line.strip() and before == TYPED
        if not is_gap:
            yield mark, line
            before = mark
