"""Taking a compaction back, by a record like any other."""

from __future__ import annotations

from itertools import dropwhile

from sqlalchemy import Connection

from ..clock import Now, given
from ..errors import CompactionError, quoted
from ..history import lines
from ..records import Compaction
from ..view import PositionRange, load_records, select_active
from .record_rows import insert_record, recorded


def undo_compaction(
    connection: Connection, session_id: str, compaction_id: int, *, now: Now = None
) -> Compaction:
    """Bring back what a compaction hid or cleared, by a record of the undoing.

    Return the compaction. What was made upon it goes first: of compactions, and of clearings, the
    newest in force; of ranges hidden by name what hides them too. Raises SessionNotFound,
    CompactionError.
    """
    pointer = lines.lock_tree(connection, session_id)
    in_force = select_active(load_records(connection, pointer, pointer.head))
    _check_can_be_undone(session_id, compaction_id, _upon(in_force, compaction_id))
    insert_record(
        connection,
        pointer,
        None,
        kind="undo",
        outcome="applied",
        reason="manual",
        undoes=compaction_id,
        created_at=given(now),
    )
    return recorded(connection, pointer, compaction_id)


def _upon(in_force: list[Compaction], compaction_id: int) -> list[int | None]:
    """Return a compaction and those in force made upon it, oldest first; none where it is not."""
    later = dropwhile(lambda record: record.id != compaction_id, in_force)
    made = next(later, None)
    if made is None:
        return []
    return [made.id, *(record.id for record in later if _is_upon(record, made))]


def _is_upon(later: Compaction, made: Compaction) -> bool:
    """Tell whether a later compaction goes by what another one left."""
    if made.kind != "hide":
        return later.kind == made.kind
    return _holds(later.hidden, made.hidden)


def _holds(hidden: PositionRange | None, other: PositionRange | None) -> bool:
    """Tell whether what one record hides, if anything, holds all that another one does."""
    if hidden is None or other is None:
        return False
    return hidden[0] <= other[0] and other[1] <= hidden[1]


def _check_can_be_undone(session_id: str, compaction_id: int, upon: list[int | None]) -> None:
    """Raise CompactionError for one that is not in force, or that another one was made upon."""
    if not upon:
        problem = f"compaction {quoted(compaction_id)} is not in force on session {session_id!r}"
        raise CompactionError(problem, session_id=session_id, reason="manual")
    newest = upon[-1]
    if compaction_id != newest:
        problem = (
            f"compaction {newest} was made upon compaction {compaction_id}; undo {newest} first"
        )
        raise CompactionError(problem, session_id=session_id, reason="manual", can_retry=True)
