"""The visibility of stored rows to a session: a condition for each kind of row.

Lines share their past, but not the records about it. So rows are read for a session by one of these
conditions, which depend on three things: the line (its branches, and how far they go), the newest
compaction record visible to each of its branches, and the owner of the session.

- Messages, and the rows derived from them, are visible on the whole line.
- Compaction records, and with them their summaries, count up to the one that was the newest when
  the next branch of the line began: later compactions of a source are not visible to a fork.
- Usages are seen by the session that recorded them and, while that session exists, by forks of the
  same owner that were made later (query ``last_usage`` in ``session_branches.sql``). A fork that
  was handed over sees none of its source, and its tokens are estimated until it has its own.
- Notes are seen by all sessions of the owner who made them.
- Drafts are seen by the session that they answer in.
- Counted tokens are seen by all sessions of the owner in whose session the message was said.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, and_, bindparam, exists

from ..database import (
    BIG_INTEGER,
    IDENTIFIER,
    branches,
    compaction_records,
    drafts,
    notes,
    sessions,
)
from .lines import match_branches, match_segments


def match_visible_records(line: FromClause) -> ColumnElement[bool]:
    """Build the condition for the compaction records that count on a line (`line_cte`)."""
    records = compaction_records.c
    reached = and_(records.head <= line.c.last, records.compaction <= line.c.newest)
    return and_(match_branches(compaction_records, line), reached)


def match_visible_notes(segments: FromClause) -> ColumnElement[bool]:
    """Build the condition for the notes on a line (`segments_cte`): those of its ``owner``."""
    is_theirs = notes.c.owner.is_not_distinct_from(bindparam("owner", type_=IDENTIFIER))
    return and_(match_segments(notes, segments), is_theirs)


def match_visible_drafts() -> ColumnElement[bool]:
    """Build the condition for the drafts of a session: ``tree_id``, ``session_id``."""
    return and_(
        drafts.c.tree_id == bindparam("tree_id"),
        drafts.c.session_id == bindparam("session_id"),
    )


def match_visible_counts(walk: FromClause) -> ColumnElement[bool]:
    """Build the condition for the branches of a walk on which counts are of an ``owner``."""
    theirs = branches.alias("theirs")
    return exists().where(
        theirs.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        theirs.c.branch == walk.c.branch,
        sessions.c.tree_id == theirs.c.tree_id,
        sessions.c.id == theirs.c.session_id,
        sessions.c.owner.is_not_distinct_from(bindparam("owner", type_=IDENTIFIER)),
    )
