"""Which drafts are live: somebody still writes them, and has shown it a moment ago.

The process that streams an answer has a heartbeat, see `store.database.heartbeat`. A draft names
its ``writer`` as long as there is one. Its sign of life is a lock, or a lease that ends at
``live_until`` by the clock of the database, so that clocks of other machines do not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    func,
    literal_column,
    null,
    select,
    update,
)

from ..database import (
    BIG_INTEGER,
    LEASE_SECONDS,
    DatabaseClock,
    Statement,
    draft_pieces,
    drafts,
    is_beating,
)
from ..errors import DraftBusy
from .lines import Pointer, match_visible_drafts

_LEASE_MS = literal_column(str(LEASE_SECONDS * 1000), BIG_INTEGER)


class DraftLease(NamedTuple):
    """The sign of life of a draft: its writer, and the ms until its lease ends (None: a lock)."""

    draft: int
    writer: str | None
    left: int | None


def match_draft(table: Table) -> ColumnElement[bool]:
    """Build the condition for a draft, or its pieces: ``tree_id`` and ``draft``."""
    return and_(
        table.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        table.c.draft == bindparam("draft", type_=BIG_INTEGER),
    )


LEASE_LEFT: ColumnElement[Any] = (drafts.c.live_until - DatabaseClock()).label("left")
WRITTEN_DRAFTS = Statement(
    select(drafts.c.draft, drafts.c.writer, LEASE_LEFT).where(
        match_visible_drafts(), drafts.c.writer.is_not(null())
    ),
    row=DraftLease,
)
_newest_text = (
    select(func.max(draft_pieces.c.at))
    .where(draft_pieces.c.tree_id == drafts.c.tree_id, draft_pieces.c.draft == drafts.c.draft)
    .scalar_subquery()
)
WRITTEN_MOMENTS = Statement(
    select(
        *(drafts.c.draft, drafts.c.writer, LEASE_LEFT),
        func.coalesce(_newest_text, drafts.c.at).label("at"),
    ).where(drafts.c.writer.is_not(null()))
)
"""The drafts of all sessions that somebody writes, each with the moment of its last text."""
RENEW_LEASE = Statement(
    update(drafts).where(match_draft(drafts)).values(live_until=DatabaseClock() + _LEASE_MS)
)
END_LEASE = Statement(
    update(drafts).where(match_draft(drafts)).values(writer=null(), live_until=null())
)


def is_lease_valid(connection: Connection, lease: DraftLease) -> bool:
    """Tell whether somebody still writes a draft."""
    if lease.writer is None:
        return False
    return is_beating(connection, lease.draft) if lease.left is None else lease.left > 0


def find_oldest_live_draft(connection: Connection) -> int | None:
    """Return when the live draft with the oldest last text got it (ms); None if none is live."""
    written = WRITTEN_MOMENTS.rows(connection)
    moments = (at for *lease, at in written if is_lease_valid(connection, DraftLease(*lease)))
    return min(moments, default=None)


def refuse_live_drafts(connection: Connection, pointer: Pointer) -> None:
    """Raise DraftBusy if an answer to a session, which is locked, is under way."""
    for lease in WRITTEN_DRAFTS.rows(connection, **pointer.session):
        refuse_live_draft(connection, pointer.session_id, pointer.tree_id, lease)


def refuse_live_draft(
    connection: Connection, session_id: str, tree_id: int, lease: DraftLease
) -> None:
    """Raise DraftBusy if a draft of a session, which is locked, is still written."""
    if is_lease_valid(connection, lease):
        raise DraftBusy(session_id, render_draft_id(tree_id, lease.draft), lease.writer)


def render_draft_id(tree_id: int, draft: int) -> str:
    """Return the id of a draft for callers."""
    return f"{tree_id:016x}{draft:016x}"
