"""Messages that follow the same message: answers made anew, questions asked otherwise."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..errors import PositionOutOfRange
from ..records import Sibling
from . import lines
from .lines import NO_LIMIT, Line, Segment
from .raw_messages import (
    check_run_complete,
    decode_stored_rows,
    join_parts,
    load_message_at,
    load_stored_rows,
    parse_part,
    report_damage,
)
from .session_branches import BRANCH_QUERIES, find_line_pointer


class BranchLine(NamedTuple):
    """A line that a session can go back to, by its branch.

    ``holder`` is the branch that holds a position of the line, ``shared`` the one that holds the
    position before; None if there is none.
    """

    branch: int
    holder: int | None
    shared: int | None


BRANCH_LINES = BRANCH_QUERIES.statement("followers", BranchLine)


def list_siblings(connection: Connection, session_id: str, seq: int) -> list[Sibling]:
    """Return the message at a position and all others that follow the same message.

    They are on the branches that `branches` lists, and are sorted by the age of the branches that
    hold them. `switch` to the branch of one brings it back with the newest messages after it.
    ``seq`` may be the position after the head: then none is current. Raises SessionNotFound,
    PositionOutOfRange.
    """
    pointer = lines.load_pointer(connection, session_id)
    if type(seq) is not int or not 0 < seq <= pointer.head + 1:
        raise PositionOutOfRange(pointer.session_id, seq, pointer.head)
    present, *left = BRANCH_LINES.rows(connection, **pointer.session, seq=seq, never=NO_LIMIT)
    alike = [present, *(each for each in left if each.shared == present.shared)]
    line = Line(connection, pointer)
    return [_load_sibling(line, seq, holder, each) for holder, each in _select_sibling_lines(alike)]


def _select_sibling_lines(alike: list[BranchLine]) -> list[tuple[int, BranchLine]]:
    """Return the first line through each message, by the branches that hold these, oldest first."""
    through: dict[int, BranchLine] = {}
    for each in alike:
        if each.holder is not None:
            through.setdefault(each.holder, each)
    return sorted(through.items())


def _load_sibling(line: Line, seq: int, holder: int, through: BranchLine) -> Sibling:
    """Return the message at a position of a branch, and the line by which it is reached."""
    connection, pointer = line
    run = Segment(holder, seq, seq).within(pointer.tree_id)
    found = decode_stored_rows(load_stored_rows(connection, run))
    check_run_complete(found, run["tree_id"], run["first"], run["last"])
    (row,), (wire_format,) = found
    is_current = through.branch == pointer.branch
    if parse_part(row, wire_format).of == 1:
        with report_damage(connection, lambda: [run]):
            (stored,) = join_parts([row], [wire_format])
    else:
        there = find_line_pointer(
            connection, pointer.session_id, None if is_current else through.branch
        )
        stored = load_message_at(Line(connection, there), seq).message
    return Sibling(through.branch, seq, stored.message, is_current)
