"""Output to a terminal: columns, cells and styles, and streams on which controls are escaped.

Messages, titles, ids and names of files come from others, and any command may print them. So while
a command runs, each standard stream that is a terminal is replaced by one that escapes every
control character, from any source. Only colours and progress bars may act on the terminal: ``rich``
keeps them apart from texts, and a `Screen` writes them to the original stream, with the texts in
them escaped. Files and pipes get the output unchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TextIO, cast

from ..text import ELLIPSIS

CUT_MARK = ELLIPSIS
"""The mark of a cut text."""

STYLES = {
    **dict.fromkeys(("terminal", "any_tool", "arguments"), "yellow"),
    "file_read": "cyan",
    "tool_output": "green",
    **dict.fromkeys(("summary", "picture", "draft"), "magenta"),
    "repair": "red",
    "user": "green",
    "assistant": "blue",
    "system": "magenta",
    "tool": "dim",
}
"""Colours of rules and roles, on a terminal."""

_UNSAFE_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that move a terminal's cursor, turn text around or cannot be written at all.

Not tabs and line ends.
"""


class Column(NamedTuple):
    """A column of a table.

    Numbers are aligned to the right, ``wide`` texts fold where there is no room, an ``id`` is cut
    there; of columns to ``spare`` an empty one goes first, then the one with the highest number, 0
    never goes. ``clip`` names the end of texts, "start" or "end", that gives way where a line is to
    hold a row; one column of a table has it, at most, and a column to spare goes as a whole.
    """

    name: str
    number: bool = False
    wide: bool = False
    id: bool = False
    spare: int = 0
    clip: str = ""


class StyledText(NamedTuple):
    """A text, and the style that a terminal shows it in."""

    text: str
    style: str = ""


StyledLine = list[StyledText]
"""The pieces of a line."""
Cell = str | int | StyledText | None
TableRow = tuple[Cell, ...]
Bar = tuple[str, int, str]
"""An amount to be drawn: its name, how much it is, and a remark."""


def escape_controls(text: str) -> str:
    """Return a text with all control characters escaped except tabs and line ends."""
    return _UNSAFE_CHARACTERS.sub(lambda found: _escape_character(found[0]), text)


def _escape_character(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def style_label(text: str | None) -> StyledText:
    """Return a rule or a role in its colour."""
    return StyledText(text or "", STYLES.get(text or "", ""))


class EscapingStream:
    """A terminal's stream on which control characters are escaped."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text with its control characters escaped."""
        return self.stream.write(escape_controls(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # bytes would not be escaped
            raise AttributeError(name)
        return getattr(self.stream, name)


def escape_output() -> AbstractContextManager[None]:
    """Escape control characters on each standard stream that is a terminal."""
    return _replace_streams(_wrap_terminal)


def allow_styles() -> AbstractContextManager[None]:
    """Let what the project itself prints, such as its help, use colours."""
    return _replace_streams(original_stream)


def original_stream(stream: TextIO) -> TextIO:
    """Return the terminal's own stream for an escaping one; any other stream as it is."""
    return stream.stream if isinstance(stream, EscapingStream) else stream


def _wrap_terminal(stream: TextIO) -> TextIO:
    return cast(TextIO, EscapingStream(stream)) if stream.isatty() else stream


@contextmanager
def _replace_streams(replace: Callable[[TextIO], TextIO]) -> Iterator[None]:
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(replace, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
