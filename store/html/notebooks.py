"""Records as HTML in a notebook: facts, and a table of messages, in at most 20 KB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from ..messages import Message
from ..text import truncate_to_line
from .flow import ShownMessage
from .message_parts import read_message
from .pages import find_gist, render_messages
from .shown_text import clean_text
from .templates import find_macro

MOST_BYTES = 20_000
"""The size of a record in a notebook, in UTF-8."""
FIRST_ROWS, LAST_ROWS = 5, 15
"""The rows that a long table shows of its beginning and of its end."""
PREVIEW_LENGTH = 160
LONGEST_TEXT = 4_000
"""Characters of each text of a message that is shown alone."""


class NotebookTable(NamedTuple):
    """A table: the names of its columns, the number of its rows, and what returns one of them."""

    columns: Sequence[str]
    total: int
    get_row: Callable[[int], Sequence[object]]


NO_TABLE = NotebookTable((), 0, lambda _: ())


def describe_message(message: Message) -> str:
    """Return the beginning of a message's text or call, in one line."""
    read = read_message(message)
    said = [part.text if part.kind == "text" else f"[{part.kind}]" for part in read.parts]
    called = [f"{call.name} {find_gist(call.fields) or call.text}" for call in read.calls]
    returned = [part.text for result in read.results for part in result.parts]
    texts = [*said, *called, *returned] or read.thoughts
    text = " · ".join(each[: 4 * PREVIEW_LENGTH] for each in texts[:PREVIEW_LENGTH])
    return truncate_to_line(clean_text(text[: 4 * PREVIEW_LENGTH]), PREVIEW_LENGTH)


def render_record(
    title: str, facts: Iterable[tuple[str, object]], table: NotebookTable = NO_TABLE
) -> str:
    """Return a record as HTML: its title, facts, and of a long table its first and last rows.

    It has at most 20 KB: rows in the middle are left out first.
    """
    told = [(name, truncate_to_line(str(value), 400)) for name, value in facts]
    first, last = FIRST_ROWS, LAST_ROWS
    while True:
        numbers = [*range(min(first, table.total))]
        numbers += range(max(first, table.total - last), table.total)
        rows = [(number, list(map(str, table.get_row(number)))) for number in numbers]
        shown = find_macro("record")(
            truncate_to_line(title, 200), told, table.columns, rows, table.total - len(rows)
        )
        if len(shown.encode()) <= MOST_BYTES or not rows:
            return str(shown)
        first, last = first // 2, last - max(1, last // 4)


def render_one_message(shown: ShownMessage) -> str:
    """Return a message as HTML, long texts of it clipped, in at most 20 KB."""
    longest = LONGEST_TEXT
    while True:
        clipped = shown._replace(message=_clip_texts(shown.message, longest))
        body = Markup("").join(render_messages([clipped]))
        made = find_macro("one_message")(body)
        if len(made.encode()) <= MOST_BYTES:
            return str(made)
        if longest < 100:
            about = [("message", describe_message(shown.message))]
            return render_record(str(shown.seq), about)
        longest //= 2


def _clip_texts(value: Any, longest: int) -> Any:
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}…"
    if isinstance(value, list):
        return [_clip_texts(each, longest) for each in value[: longest // 20]]
    if isinstance(value, dict):
        return {key: _clip_texts(held, longest) for key, held in [*value.items()][: longest // 20]}
    return value
