"""The fitting of tables to the terminal.

A table that is wider than the terminal (or than $COLUMNS, if the output is a pipe) is fitted in
four steps, each only if the one before was not enough: ids are cut to unique beginnings,
dispensable columns are dropped, columns that may lose a part are clipped, wide columns are folded.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from .shown import CUT, Column

SHORTEST_ID = 8
"""Code points that a cut id keeps, at least."""

NARROWEST = 24
"""Columns in which a wide text can still be read, folded."""

CLIPPED = 16
"""Columns that are left of a clipped text, at least."""

GAP = 3
"""Columns between two columns of a table."""

Texts = list[Text]


class Drawn(NamedTuple):
    """A column and its cells, from top to bottom."""

    column: Column
    texts: Texts

    def width(self, *, folded: bool) -> int:
        """Return how wide it is, a wide one folded or not."""
        longest = max((cell_len(text.plain) for text in self.texts), default=0)
        if folded and self.column.wide:
            longest = min(longest, NARROWEST)
        if folded and self.column.clip and not self.column.spare:
            longest = min(longest, CLIPPED)
        return max(longest, cell_len(self.column.name))

    def cut(self) -> Drawn:
        """Return it with its ids cut."""
        if not self.column.id:
            return self
        length = _telling_length({each.plain for each in self.texts})
        return self._replace(
            texts=[
                (each if len(each.plain) <= length + 1 else Text(each.plain[:length] + CUT))
                for each in self.texts
            ]
        )

    def clipped(self, over: int) -> Drawn:
        """Return it narrower by so many columns, if it can be clipped."""
        if not self.column.clip or over <= 0:
            return self
        room = max(self.width(folded=False) - over, CLIPPED)
        clip = CLIPS[self.column.clip]
        return self._replace(texts=[clip(each, room) for each in self.texts])


def without_start(text: Text, room: int) -> Text:
    """Return a text of at most so many columns, its end where all has no room."""
    if cell_len(text.plain) <= room:
        return text
    end = set_cell_size(text.plain[::-1], room - 1)[::-1]
    return Text(CUT + end)


def _without_end(text: Text, room: int) -> Text:
    short = text.copy()
    short.truncate(room, overflow="ellipsis")
    return short


CLIPS = {"start": without_start, "end": _without_end}
"""What clips a text, by the end that gives way."""


def _telling_length(ids: set[str]) -> int:
    length = SHORTEST_ID
    while len({each[:length] for each in ids}) < len(ids):
        length += 1
    return length


def fitted(columns: list[Drawn], width: int) -> list[Drawn]:
    """Return a table's columns, cut and dropped as far as a width makes it necessary."""
    if _width(columns, folded=False) <= width:
        return columns
    left = [each.cut() for each in columns]
    spare = [each for each in left if each.column.spare]
    to_spare = sorted(spare, key=_ease)
    while to_spare and not fits(left, width):
        left.remove(to_spare.pop())
    over = _width(left, folded=False) - width
    return [each.clipped(over) for each in left]


def fits(columns: list[Drawn], width: int) -> bool:
    """Tell whether a line has room for a whole row, wide columns folded."""
    return _width(columns, folded=True) <= width


def _ease(each: Drawn) -> tuple[bool, int]:
    """Return how easily a column can be spared."""
    is_empty = not any(text.plain for text in each.texts)
    return is_empty, each.column.spare


def _width(columns: list[Drawn], *, folded: bool) -> int:
    gaps = GAP * (len(columns) - 1)
    return gaps + sum(each.width(folded=folded) for each in columns)
