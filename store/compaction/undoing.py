"""Taking a compaction back, by a record like any other."""

from __future__ import annotations

from sqlalchemy import Connection

from ..clock import Now, given
from ..errors import CompactionError
from ..history import lines
from ..records import Compaction
from ..view import active, records
from .records import insert_record, recorded


def undo_compaction(
    connection: Connection, session_id: str, compaction_id: int, *, now: Now = None
) -> Compaction:
    """Bring back what a compaction hid or cleared, by a record of the undoing.

    Return the compaction. The newest in force goes first, because later ones were made upon it.
    Raises SessionNotFound, CompactionError.
    """
    pointer = lines.lock_tree(connection, session_id)
    in_force = active(records(connection, pointer, pointer.head))
    _check_can_be_undone(session_id, compaction_id, _alike(in_force, compaction_id))
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


def _alike(in_force: list[Compaction], compaction_id: int) -> list[int | None]:
    """Return the compactions in force of the same kind, oldest first; none where it is not."""
    kinds = {record.id: record.kind for record in in_force}
    kind = kinds.get(compaction_id)
    return [record.id for record in in_force if record.kind == kind]


def _check_can_be_undone(session_id: str, compaction_id: int, alike: list[int | None]) -> None:
    """Raise CompactionError for one that is not in force, or not the newest of its kind."""
    if not alike:
        problem = f"compaction {compaction_id!r} is not in force on session {session_id!r}"
        raise CompactionError(problem, session_id=session_id, reason="manual")
    newest = alike[-1]
    if compaction_id != newest:
        problem = (
            f"compaction {newest} was made upon compaction {compaction_id}; undo {newest} first"
        )
        raise CompactionError(problem, session_id=session_id, reason="manual", can_retry=True)
