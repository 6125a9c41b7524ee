"""A history of aider (``.aider.chat.history.md``) as chats, each a value with its lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..events import NoteEvent
from ..source import FilePath, SourceValue, TranscriptSource

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
