"""The output of commands as data: columns, cells and styles, with texts made safe for a terminal.

The texts of messages come from others: no escape sequence in them may reach a terminal.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
