"""Histories of aider, which are Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..records import FilePath, Message
from .parser_events import (
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
    """A history: a sequence of chats; each begins with a line of its own."""

    kind = "aider"

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self.problem = None
        self.report_to(None)

    def values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the chats, each with its lines; bad UTF-8 is replaced."""
        self.rows = consumed = 0
        began: int | None = None
        raw, lines = b"", list[str]()
        with self.path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                consumed += len(raw)
                self.limits.check_time()
                # the last letter of a line that is being written may be there in part
                line = raw.decode("utf-8-sig", "replace").rstrip("\r\n\ufffd")
                self.rows += bool(line.strip())
                if line.startswith(CHAT_HEADING):
                    yield from _build_chat_value(began, lines)
                    began, lines = number, []
                lines.append(line)
        yield from _build_chat_value(began, lines, is_cut=not raw.endswith(b"\n"))
        self._progress(consumed)


def _build_chat_value(
    began: int | None, lines: list[str], *, is_cut: bool = False
) -> Iterator[SourceValue]:
    if began is not None:
        started = lines[0].removeprefix(CHAT_HEADING).strip()
        yield SourceValue(began, {"aider_chat": started, "lines": lines[1:], "is_cut": is_cut})


TYPED, OUTPUT = "#### ", "> "
"""How lines begin that the user typed, and that the program said."""

MARKED_LINE_END = "  "
"""How the lines end that aider marked itself."""

MODEL_LINE = re.compile(r"> (?:Main model|Models?): (\S+)")
"""The model that answered; older versions name a second one after it."""

ROLE_BY_MARK = {TYPED: "user", "": "assistant"}


class MarkedLine(NamedTuple):
    """A line, how it begins (None: not to be told yet), and where it is in the file."""

    mark: str | None
    text: str
    number: int


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
    marked = [*_mark_lines(chat["lines"], item.row or 0, is_cut=chat["is_cut"])]
    messages = list(_join_marked_lines(marked))
    if messages:
        began = parse_iso_milliseconds(started)
        found = filter(None, map(MODEL_LINE.match, chat["lines"]))
        metadata = drop_empty_fields(
            {"model": next((match[1].rstrip(",") for match in found), None)}
        )
        title = find_title(messages)
        titles = tuple((title or "")[:end].rstrip() for end in range(1, len(title or "")))
        yield SessionEvent(name, title, str(folder), metadata, titles=titles, created_at=began)
        yield from map(SessionMessage, messages)
    output = sum(each.mark == OUTPUT and each.text.strip() != OUTPUT.strip() for each in marked)
    if any(each.mark is None for each in marked):
        told = f"line {marked[-1].number} is left out, it has no end that tells who said it"
        yield NoteEvent(marked[-1].number, told, broken=True, unfinished=True)
    if output:
        yield note_omission(output, "line", f" that aider said itself in {name!r}")


def _mark_lines(lines: list[str], heading: int, *, is_cut: bool) -> Iterator[MarkedLine]:
    """Yield the lines of a chat.

    The end of a line tells whether its mark is aider's, so a last one that has no end may wait for
    it: it may also be the beginning of a mark.
    """
    are_ended = any(_find_line_mark(line) and line.endswith(MARKED_LINE_END) for line in lines)
    for number, line in enumerate(lines, heading + 1):
        is_last = is_cut and number == heading + len(lines)
        mark: str | None = _find_line_mark(line)
        is_plain = are_ended and not line.endswith(MARKED_LINE_END)
        if is_last and ((mark and is_plain) or (line and _may_become_mark(line))):
            mark = None
        elif is_plain:
            mark = ""
        yield MarkedLine(mark, line, number)


def _may_become_mark(line: str) -> bool:
    return any(mark.startswith(line) and mark != line for mark in (TYPED, CHAT_HEADING))


def _join_marked_lines(marked: list[MarkedLine]) -> Iterator[Message]:
    """Yield the messages: consecutive lines of one kind are one message."""
    sent = (each for each in marked if each.mark in ROLE_BY_MARK)
    for mark, group in groupby(_drop_gaps(sent), key=attrgetter("mark")):
        lines = [*group]
        text = "\n".join(each.text.removeprefix(mark).rstrip() for each in lines).strip()
        if text:
            place = {"line": lines[0].number}
            yield {"role": ROLE_BY_MARK[mark], "content": text, "aider": place}


def _find_line_mark(line: str) -> str:
    """Return the mark of a line, "" if it belongs to an answer; a typed line may be empty."""
    if line.startswith(TYPED) or line == TYPED.rstrip():
        return TYPED
    return OUTPUT if line.startswith(OUTPUT) or line == OUTPUT.rstrip() else ""


def _drop_gaps(said: Iterator[MarkedLine]) -> Iterator[MarkedLine]:
    """Yield the lines without empty lines after a typed line, which are not an answer."""
    before: str | None = ""
    for each in said:
        is_gap = not each.text.strip() and before == TYPED
        if not is_gap:
            yield each
            before = each.mark
