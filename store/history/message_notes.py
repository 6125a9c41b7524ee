"""Notes that an app keeps beside messages: ratings, read marks, scores of evaluations.

A note belongs to its message: all lines through the message have it, and it is erased with the
message. The notes of one owner are not visible in the sessions of another. So each note is stored
with its owner, and each message and owner have one note for a key, the newest.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    select,
    tuple_,
)

from ..clock import Now, require_moment
from ..database import BIG, IDENTIFIER, Insertion, Statement, notes, sessions
from ..errors import InvalidValue, quoted
from ..messages import decode
from ..records import Note
from . import lines
from .lines import Line
from .sessions import encode_value, validate_limit, validate_text
from .visibility import visible_notes

_n = notes.c
_key = _n.key == bindparam("key", type_=IDENTIFIER)
_whose = _n.owner.is_not_distinct_from(bindparam("owner", type_=IDENTIFIER))
_newest = func.coalesce(func.max(_n.note), literal_column("0"))
NEXT_NOTE = Statement(select(_newest + literal_column("1")).where(lines.at_place(notes)))
INSERT_NOTE = Insertion(notes)
DELETE_NOTE = Statement(delete(notes).where(lines.at_place(notes), _key, _whose))
_of_owner = and_(
    sessions.c.tree_id == bindparam("tree_id", type_=BIG),
    sessions.c.owner.is_not_distinct_from(_n.owner),
)
DELETE_LEFT = Statement(
    delete(notes).where(
        _n.tree_id == bindparam("tree_id", type_=BIG),
        _n.session_id == bindparam("session_id", type_=IDENTIFIER),
        ~exists().where(_of_owner),
    )
)
"""The notes of a session whose owner has no other session in the tree that could show them."""

_FIELDS: dict[str, Column[Any]] = {name: _n[name] for name in Note._fields}
_COLUMNS = _FIELDS.values()
_IN_ORDER = {name: _n[name] for name in ("at", "session_id", "branch", "seq", "key")}
"""The order of lists over sessions, oldest first: it is unique for each note."""
_seen = (bindparam(f"seen_{name}", type_=each.type) for name, each in _IN_ORDER.items())
_CONDITIONS: dict[str, ColumnElement[bool]] = {
    "key": _key,
    "owner": and_(_whose, sessions.c.owner == bindparam("owner", type_=IDENTIFIER)),
    "seen_at": and_(
        _n.at >= bindparam("seen_at", type_=BIG),
        tuple_(*_IN_ORDER.values()) > tuple_(*_seen),
    ),
}
"""The conditions by which notes are selected, each with the value that it binds."""


@cache
def on_line(names: tuple[str, ...]) -> Statement[Note]:
    """Build the list of an owner's notes on a line, in its order."""
    segments = lines.segments_cte()
    query = select(*_COLUMNS).select_from(segments).join(notes, visible_notes(segments))
    found = query.where(*(_CONDITIONS[name] for name in names))
    return Statement(found.order_by(_n.seq, _n.key), row=Note)


@cache
def listed(names: tuple[str, ...]) -> Statement[Note]:
    """Build the list of notes over sessions by the names of its conditions."""
    query = _noted(select(*_COLUMNS)).where(*(_CONDITIONS[name] for name in names))
    ordered = query.order_by(*_IN_ORDER.values())
    return Statement(ordered.limit(bindparam("limit", type_=BIG)), row=Note)


def _noted(query: Select[Any]) -> Select[Any]:
    """Build the query for the notes of sessions that exist."""
    of_session = and_(sessions.c.tree_id == _n.tree_id, sessions.c.id == _n.session_id)
    return query.select_from(notes).join(sessions, of_session)


NOTES = on_line(())
NOTES_OF_KEY = on_line(("key",))
LIST_OF_KEY = listed(("key",))
LIST_OF_KEY_AFTER = listed(("key", "seen_at"))
LIST_OF_OWNER = listed(("owner",))
LIST_OF_OWNERS_KEY = listed(("key", "owner"))


def annotate(
    connection: Connection, session_id: str, seq: int, key: str, value: Any, *, now: Now = None
) -> Note | None:
    """Note a JSON value under a key beside a message of a session's line; None removes the note.

    The message and the session's revision do not change. A message has one note for each key, the
    newest. The note is visible on every line of the same owner through the message, and is erased
    with the message. Raises SessionNotFound, PositionOutOfRange, InvalidValue.
    """
    name, text = _checked_key(key), None if value is None else encode_value("value", value)
    pointer = lines.lock_tree(connection, session_id)
    pointer.check_message(seq)
    place = Line(connection, pointer).place(seq)
    whose = {"key": name, "owner": pointer.owner}
    DELETE_NOTE.run(connection, **place, **whose)
    if text is None:
        return None
    number = NEXT_NOTE.value(connection, **place)
    made: dict[str, Any] = {"session_id": session_id, "value": text, "at": require_moment(now)}
    INSERT_NOTE.run(connection, **place, **whose, **made, note=number)
    return _told(Note(branch=place["branch"], seq=seq, key=name, **made))


def list_notes(
    connection: Connection,
    session_id: str | None = None,
    *,
    key: str | None = None,
    owner: str | None = None,
    limit: int | None = None,
    after: Note | None = None,
) -> list[Note]:
    """Return notes: those on a session's line in its order, or over all sessions, oldest first.

    ``key`` selects the notes of one key. A line has the notes of the session's owner, in whichever
    session they were made. Over all sessions the notes are those of an ``owner`` (None: any), at
    most ``limit`` of them (None: all), that follow ``after``, the last one already seen. Raises
    SessionNotFound, InvalidValue.
    """
    asked: dict[str, Any] = {} if key is None else {"key": _checked_key(key)}
    if session_id is not None:
        pointer = lines.load_pointer(connection, session_id)
        if owner not in (None, pointer.owner):
            found = []
        else:
            found = on_line(_names(asked)).rows(
                connection, **pointer.whole, owner=pointer.owner, **asked
            )
    else:
        values = asked | _of(owner) | _behind(after)
        found = listed(_names(values)).rows(connection, **values, limit=validate_limit(limit))
    return [*map(_told, found)]


def _of(owner: str | None) -> dict[str, Any]:
    return {} if owner is None else {"owner": validate_text("owner", owner)}


def _behind(after: Note | None) -> dict[str, Any]:
    """Return the values that locate the last note already seen."""
    if after is None:
        return {}
    if not isinstance(after, Note):
        raise InvalidValue(f"after is the last note already seen, not {quoted(after)}")
    return {f"seen_{name}": getattr(after, name) for name in _IN_ORDER}


def _names(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in _CONDITIONS if name in values)


def _checked_key(key: str) -> str:
    text = validate_text("key", key)
    if not text:
        raise InvalidValue(f"key is a text, such as 'rating', not {quoted(key)}")
    return text


def _told(note: Note) -> Note:
    """Return a note with its value decoded from text."""
    return note._replace(value=decode(note.value))
