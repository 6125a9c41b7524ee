"""The title of a session: the given one, else the first words of the user."""

from __future__ import annotations

from sqlalchemy import Connection, literal_column, select

from ..database import Statement, message_facts
from ..messages import extract_content_text
from ..text import truncate_to_line
from . import lines
from .facts import load_totals
from .lines import Line, match_run
from .sessions import load_session
from .turns import load_chat_message

MAX_TITLE_LENGTH = 80
"""Code points of a title that is made of a message."""

FIRST_TURN_POSITION = Statement(
    select(message_facts.c.seq)
    .where(match_run(message_facts), message_facts.c.turn > literal_column("0"))
    .order_by(message_facts.c.seq)
    .limit(literal_column("1"))
)


def load_title(connection: Connection, session_id: str) -> str | None:
    """Return a session's title: the given one, else one made of its first user message.

    The latter is one line of at most 80 code points, made at each read and never stored, so
    `Session.title` tells whether one was given; None if nothing was said in words. Raises
    SessionNotFound.
    """
    given = load_session(connection, session_id).title
    if given is not None:
        return given
    line = Line(connection, lines.load_pointer(connection, session_id))
    first = _find_first_turn(line)
    if first is None:
        return None
    said = extract_content_text(load_chat_message(line, first).get("content"))
    return truncate_to_line(said, MAX_TITLE_LENGTH) or None


def _find_first_turn(line: Line) -> int | None:
    """Return the position of the first user turn on a line; None if there is none."""
    head = line.pointer.head
    if not load_totals(line, head).turn:
        return None
    for run in line.ranges(1, head):
        start: int | None = FIRST_TURN_POSITION.value(line.connection, **run)
        if start is not None:
            return start
    return None
