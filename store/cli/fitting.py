"""The fitting of tables to the terminal.

A table that is wider than the terminal (or than $COLUMNS, if the output is a pipe) is fitted in
four steps, each only if the one before was not enough: ids are cut to unique beginnings,
dispensable columns are dropped, columns that may lose a part are clipped, wide columns are folded.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from .shown import CUT_MARK, Column

MIN_ID_LENGTH = 8
"""Code points that a cut id keeps, at least."""

MIN_FOLDED_WIDTH = 24
"""Columns in which a wide text can still be read, folded."""

MIN_CLIPPED_WIDTH = 16
"""Columns that are left of a clipped text, at least."""

COLUMN_GAP = 3
"""Columns between two columns of a table."""

CellTexts = list[Text]


class FilledColumn(NamedTuple):
    """A column and its cells, from top to bottom."""

    column: Column
    texts: CellTexts

    def width(self, *, folded: bool) -> int:
        """Return how wide it is, a wide one folded or not."""
        longest = max((cell_len(text.plain) for text in self.texts), default=0)
        if folded and self.column.wide:
            longest = min(longest, MIN_FOLDED_WIDTH)
        if folded and self.column.clip and not self.column.spare:
            longest = min(longest, MIN_CLIPPED_WIDTH)
        return max(longest, cell_len(self.column.name))

    def cut(self) -> FilledColumn:
        """Return it with its ids cut."""
        if not self.column.id:
            return self
        length = _find_unique_length({each.plain for each in self.texts})
        return self._replace(
            texts=[
                (each if len(each.plain) <= length + 1 else Text(each.plain[:length] + CUT_MARK))
                for each in self.texts
            ]
        )

    def clipped(self, over: int) -> FilledColumn:
        """Return it narrower by so many columns, if it can be clipped."""
        if not self.column.clip or over <= 0:
            return self
        room = max(self.width(folded=False) - over, MIN_CLIPPED_WIDTH)
        clip = CLIP_FUNCTIONS[self.column.clip]
        return self._replace(texts=[clip(each, room) for each in self.texts])


def clip_start(text: Text, room: int) -> Text:
    """Return a text of at most so many columns, its end where all has no room."""
    if cell_len(text.plain) <= room:
        return text
    end = set_cell_size(text.plain[::-1], room - 1)[::-1]
    return Text(CUT_MARK + end)


def _clip_end(text: Text, room: int) -> Text:
    short = text.copy()
    short.truncate(room, overflow="ellipsis")
    return short


CLIP_FUNCTIONS = {"start": clip_start, "end": _clip_end}
"""What clips a text, by the end that gives way."""


def _find_unique_length(ids: set[str]) -> int:
    length = MIN_ID_LENGTH
    while len({each[:length] for each in ids}) < len(ids):
        length += 1
    return length


def fit_columns(columns: list[FilledColumn], width: int) -> list[FilledColumn]:
    """Return a table's columns, cut and dropped as far as a width makes it necessary."""
    if _compute_table_width(columns, folded=False) <= width:
        return columns
    left = [each.cut() for each in columns]
    spare = [each for each in left if each.column.spare]
    to_spare = sorted(spare, key=_rank_spare_column)
    while to_spare and not has_room_for_row(left, width):
        left.remove(to_spare.pop())
    over = _compute_table_width(left, folded=False) - width
    return [each.clipped(over) for each in left]


def has_room_for_row(columns: list[FilledColumn], width: int) -> bool:
    """Tell whether a line has room for a whole row, wide columns folded."""
    return _compute_table_width(columns, folded=True) <= width


def _rank_spare_column(each: FilledColumn) -> tuple[bool, int]:
    """Return how easily a column can be spared."""
    is_empty = not any(text.plain for text in each.texts)
    return is_empty, each.column.spare


def _compute_table_width(columns: list[FilledColumn], *, folded: bool) -> int:
    gaps = COLUMN_GAP * (len(columns) - 1)
    return gaps + sum(each.width(folded=folded) for each in columns)
