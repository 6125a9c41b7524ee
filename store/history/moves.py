"""The log of every move of a session's head: the fork that made it, rewinds, switches, undoings."""

from __future__ import annotations

from sqlalchemy import Connection, and_, bindparam, select

from ..database import BIG, Insertion, Row, Statement, head_moves
from ..records import HeadMove
from . import lines
from .lines import Pointer

_of_session = and_(
    head_moves.c.tree_id == bindparam("tree_id", type_=BIG),
    head_moves.c.session_id == bindparam("session_id"),
)
INSERT_MOVE = Insertion(
    head_moves,
    *("tree_id", "session_id", "move", "kind"),
    *("from_branch", "from_position", "to_branch", "to_position"),
    *("moved_at", "earlier_rewind", "source_move", "source_record"),
)
MOVES = Statement(
    select(*(head_moves.c[name] for name in HeadMove._fields))
    .where(_of_session)
    .order_by(head_moves.c.move),
    row=HeadMove,
)


def moves_of(connection: Connection, session_id: str) -> list[HeadMove]:
    """Return a session's head-move log, oldest first.

    The fork that made it, rewinds, switches and undoings. Raises SessionNotFound.
    """
    pointer = lines.load_pointer(connection, session_id)
    return MOVES.rows(connection, **pointer.session)


def log_move(
    connection: Connection,
    kind: str,
    source: Pointer,
    target: Pointer,
    number: int,
    moment: int,
) -> None:
    """Record a move of a session's head."""
    earlier = None if kind == "undo" else source.last_rewind
    moved = _moved(source, target, number, kind)
    INSERT_MOVE.insert(connection, (*moved, moment, earlier, None, None))


def log_fork(
    connection: Connection,
    source: Pointer,
    target: Pointer,
    seen: tuple[int, int] | None,
    moment: int,
) -> None:
    """Record a fork, with the last move and record of its source that it sees.

    Without them it sees nothing but its line.
    """
    last_move, last_record = seen or (None, None)
    moved = _moved(source, target, 1, "fork")
    INSERT_MOVE.insert(connection, (*moved, moment, None, last_move, last_record))


def _moved(source: Pointer, target: Pointer, move: int, kind: str) -> Row:
    """Return the first columns of a move's row: which it is, where from and where to."""
    named = (target.tree_id, target.session_id, move, kind)
    return (*named, source.branch, source.head, target.branch, target.head)
