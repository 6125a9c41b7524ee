"""Take the words out of one message, for good: the one change of a raw row, and it is recorded.

A redaction opens in the transaction that does it: while its row is open, the database lets the
message's rows be written over. Only values of a list stay (`store.messages.redacted_messages`),
among them what others hang on: the role, the time, an id by which calls and results find each
other. The row's digest is that of what it holds from then on, and everything that was derived from
the words is
derived anew: its tokens, and so the sums of all that follow it on any branch, its facts, and those
of the results that its calls asked for. So `verify` finds nothing, and nothing tells what it said,
but for summaries that were made of it before: those are named.
"""

from __future__ import annotations

import json
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, and_, bindparam, select, update

from ..clock import Now, given
from ..database import (
    COPIES,
    CopyRow,
    Insertion,
    Statement,
    compaction_records,
    forget_kept,
    redactions,
    sessions,
    summaries,
)
from ..errors import InvalidValue, quoted
from ..messages import REDACTED, content_text, decode_as
from ..records import Redaction
from ..text import ELLIPSIS, is_text
from . import lines
from .blanking import STORED, Place, at_end, blank, names_of, placed
from .erasure import NEWEST_COPY
from .lines import PLACE, Line
from .raw_messages import load_chat_messages

LONGEST_REASON = 10_000
"""Code points."""
LEAST_REPEATED = 12
"""Code points of a title that repeats a message from within; of its beginning any number is enough.
"""

MessagePlace: TypeAlias = tuple[int, int, int]
"""Where a message stands: tree, branch and position."""
SessionPosition: TypeAlias = tuple[str, int]
"""A session, and a position on its line."""


class Recorded(NamedTuple):
    """A redaction as its row tells of it."""

    tree_id: int
    branch: int
    seq: int
    session_id: str
    reason: str
    redacted_by: str | None
    redacted_at: int
    summaries: str
    newest_copy: int
    purged_at: int | None


class Summarised(NamedTuple):
    """A summary: the branch that it was made on, the last position it tells of, its record."""

    branch: int
    last: int
    compaction: int


OPEN_REDACTION = Insertion(redactions, *Recorded._fields[:-1])
CLOSE_REDACTION = Statement(
    update(redactions).where(placed(redactions)).values(finished_at=bindparam("now"))
)
_recorded = select(*(redactions.c[name] for name in Recorded._fields))
_oldest_first = (redactions.c.redacted_at, redactions.c.branch, redactions.c.seq)
REDACTION = Statement(_recorded.where(lines.at_place(redactions)), row=Recorded)
REDACTIONS = Statement(_recorded.order_by(*_oldest_first), row=Recorded)
REDACTIONS_OF_TREE = Statement(
    _recorded.where(redactions.c.tree_id == bindparam("tree_id")).order_by(*_oldest_first),
    row=Recorded,
)
_of_summary = and_(
    compaction_records.c.tree_id == summaries.c.tree_id,
    compaction_records.c.summary == summaries.c.summary,
)
SUMMARISED = Statement(
    select(summaries.c.branch, summaries.c.last, compaction_records.c.compaction)
    .join(compaction_records, _of_summary)
    .where(
        summaries.c.tree_id == bindparam("tree_id"),
        summaries.c.first <= bindparam("seq"),
        summaries.c.last >= bindparam("seq"),
    ),
    row=Summarised,
)
TITLED = Statement(
    select(sessions.c.id, sessions.c.title)
    .where(sessions.c.tree_id == bindparam("tree_id"), sessions.c.title.is_not(None))
    .order_by(sessions.c.id)
)
SET_TITLE = Statement(lines.update_session(title=bindparam("title")))
_to_purge = update(redactions).where(redactions.c.purged_at.is_(None))
NOTE_REWRITTEN = Statement(_to_purge.values(purged_at=bindparam("now")))
"""One purge is enough for all redactions of a file, whatever their trees."""


def redact(
    connection: Connection,
    session_id: str,
    seq: int,
    reason: str,
    *,
    by: str | None = None,
    now: Now = None,
) -> Redaction:
    """Write over what a message says, on every line that it is on, and record why.

    Its content, the arguments of its calls and all other keys go. Its time stays; its role, status,
    names of tools and ids stay where they are known words or generated, others are replaced by
    neutral values, by which calls and results still find each other. A title that repeats the
    message becomes ``[redacted]``. The message then says ``[redacted]`` and has a key ``redacted``.
    Returns the record: that of the first time, where it was redacted before. Summaries that tell of
    the message are named, not changed: undo those compactions and compact again. `purge` leaves no
    byte of it in the file, copies are named.
    Raises SessionNotFound, PositionOutOfRange, InvalidValue.
    """
    moment = given(now)
    _check(reason, by)
    line = Line(connection, lines.lock_tree(connection, session_id))
    place = _place(line, seq)
    if REDACTION.row(connection, **place) is None:
        _blank_titles(line, seq)
        _open(line, place, reason, by, moment)
        blank(line, place)
        forget_kept(connection, place["tree_id"])
        CLOSE_REDACTION.run(connection, **names_of(place), now=moment)
    return _redaction(REDACTION.one(connection, **place), COPIES.rows(connection))


def list_redactions(connection: Connection, session_id: str | None = None) -> list[Redaction]:
    """Return the redactions of a session's line, or of the whole store, oldest first.

    Raises SessionNotFound.
    """
    known = COPIES.rows(connection)
    if session_id is None:
        return [_redaction(row, known) for row in REDACTIONS.rows(connection)]
    line = Line(connection, lines.load_pointer(connection, session_id))
    rows = REDACTIONS_OF_TREE.rows(connection, tree_id=line.pointer.tree_id)
    return [_redaction(row, known) for row in rows if _is_on(line, row)]


def mark_redactions_purged(connection: Connection, *, now: Now = None) -> None:
    """Note that the files hold no byte any more of what was redacted until now."""
    NOTE_REWRITTEN.run(connection, now=given(now))


def places(connection: Connection) -> dict[MessagePlace, SessionPosition]:
    """Return the session and position that each redaction names, by where the message stands."""
    rows = REDACTIONS.rows(connection)
    return {(row.tree_id, row.branch, row.seq): (row.session_id, row.seq) for row in rows}


def has_message(connection: Connection, place: MessagePlace) -> bool:
    """Tell whether there is a message at a place."""
    return STORED.row(connection, **dict(zip(PLACE, place, strict=True))) is not None


def _check(reason: str, by: str | None) -> None:
    if not is_text(reason) or not reason.strip() or len(reason) > LONGEST_REASON:
        raise InvalidValue(f"say why it is redacted, in a text, not {quoted(reason)}")
    if by is not None and not is_text(by):
        raise InvalidValue(f"by is who redacts it, a text, not {quoted(by)}")


def _place(line: Line, seq: int) -> Place:
    line.pointer.check_message(seq)
    return line.place(seq)


def _blank_titles(line: Line, seq: int) -> None:
    """Write over the titles of a tree's sessions that repeat what a message says.

    Those that an import made of it do; a later import follows no title that the store gave.
    """
    (stored,) = load_chat_messages(line, seq, seq)
    said = " ".join(content_text(stored.message.get("content")).split())
    for session_id, title in TITLED.rows(line.connection, tree_id=line.pointer.tree_id):
        repeated = " ".join(title.split()).rstrip(f"{ELLIPSIS}.")
        is_within = len(repeated) >= LEAST_REPEATED and repeated in said
        if repeated and (is_within or said.startswith(repeated)):
            titled = line.pointer._replace(session_id=session_id)
            SET_TITLE.run(line.connection, **titled.changed(), title=REDACTED)


def _open(line: Line, place: Place, reason: str, by: str | None, moment: int) -> None:
    """Record that a message is redacted; from now on its rows can be written over."""
    recorded = Recorded(
        **place,
        session_id=line.pointer.session_id,
        reason=reason,
        redacted_by=by,
        redacted_at=moment,
        summaries=json.dumps(_told_of(line, place)),
        newest_copy=NEWEST_COPY.value(line.connection),
        purged_at=None,
    )
    OPEN_REDACTION.insert_many(line.connection, [recorded[:-1]])


def _told_of(line: Line, place: Place) -> list[int]:
    """Return the compactions whose summaries tell of a message."""
    found = SUMMARISED.rows(line.connection, tree_id=place["tree_id"], seq=place["seq"])
    return sorted({each.compaction for each in found if _runs_through(line, each, place)})


def _runs_through(line: Line, each: Summarised, place: Place) -> bool:
    """Tell whether the line that a summary was made on runs through a place."""
    pointer = at_end(line.pointer, each.branch, each.last)
    return Line(line.connection, pointer).place(place["seq"]) == place


def _is_on(line: Line, row: Recorded) -> bool:
    """Tell whether a redacted message is on a line."""
    return row.seq <= line.pointer.head and line.place(row.seq)["branch"] == row.branch


def _redaction(row: Recorded, known: list[CopyRow]) -> Redaction:
    copies = tuple(copy.path for copy in known if copy.copy <= row.newest_copy)
    return Redaction(
        row.session_id,
        row.seq,
        row.reason,
        row.redacted_by,
        row.redacted_at,
        tuple(decode_as(list, row.summaries)),
        row.purged_at is not None,
        copies,
    )
