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
    kinds = {record.id: record.kind for record in in_force}
    if compaction_id not in kinds:
        problem = f"compaction {compaction_id!r} is not in force on session {session_id!r}"
        raise CompactionError(problem, session_id=session_id, reason="manual")
    alike = [record.id for record in in_force if record.kind == kinds[compaction_id]]
    newest = alike[-1]
    if compaction_id != newest:
        problem = (
            f"compaction {newest} was made upon compaction {compaction_id}; undo {newest} first"
        )
        raise CompactionError(problem, session_id=session_id, reason="manual", can_retry=True)
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
