"""The queries of a view of a line, sent to a server together before the first one is asked."""

from __future__ import annotations

from sqlalchemy import Connection

from ..database import get_lease
from ..history import Line, Pointer, TreeState, facts, load_pointer_and_state, usages
from .visible_set import RECORD_OUTCOMES


def load_viewed_pointer(connection: Connection, session_id: str) -> tuple[Pointer, TreeState]:
    """Return the pointer of a session that is viewed, and what its tree has.

    The kinds of tools, which a cached view depends on, come with it from a server. Raises
    SessionNotFound.
    """
    if get_lease(connection).kept.limit:
        facts.TOOL_KINDS_JSON.send(connection)
    return load_pointer_and_state(connection, session_id)


def send_view_queries(
    connection: Connection, pointer: Pointer, last: int, state: TreeState
) -> None:
    """Send a server what a view up to a position will ask for, as its tree has it."""
    if state.has_records:
        RECORD_OUTCOMES.send(connection, **pointer.line, last=last, newest=pointer.newest)
    if state.has_usages:
        usages.send_last_usage(Line(connection, pointer), last)
