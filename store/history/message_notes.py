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
from ..database import BIG_INTEGER, IDENTIFIER, Insertion, Statement, notes, sessions
from ..errors import InvalidValue, quote_value
from ..messages import decode
from ..records import Note
from . import lines
from .lines import Line, match_visible_notes
from .sessions import encode_value, validate_limit, validate_text

_note_columns = notes.c
_note_key_condition = _note_columns.key == bindparam("key", type_=IDENTIFIER)
_note_owner_condition = _note_columns.owner.is_not_distinct_from(
    bindparam("owner", type_=IDENTIFIER)
)
_newest_note = func.coalesce(func.max(_note_columns.note), literal_column("0"))
NEXT_NOTE = Statement(select(_newest_note + literal_column("1")).where(lines.match_place(notes)))
INSERT_NOTE = Insertion(notes)
DELETE_NOTE = Statement(
    delete(notes).where(lines.match_place(notes), _note_key_condition, _note_owner_condition)
)
_owner_session_condition = and_(
    sessions.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
    sessions.c.owner.is_not_distinct_from(_note_columns.owner),
)
DELETE_UNREACHABLE_NOTES = Statement(
    delete(notes).where(
        _note_columns.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        _note_columns.session_id == bindparam("session_id", type_=IDENTIFIER),
        ~exists().where(_owner_session_condition),
    )
)
"""The notes of a session whose owner has no other session in the tree that could show them."""

_NOTE_FIELDS: dict[str, Column[Any]] = {name: _note_columns[name] for name in Note._fields}
_NOTE_LIST_COLUMNS = _NOTE_FIELDS.values()
_NOTE_ORDER = {name: _note_columns[name] for name in ("at", "session_id", "branch", "seq", "key")}
"""The order of lists over sessions, oldest first: it is unique for each note."""
_seen_note_binds = (
    bindparam(f"seen_{name}", type_=each.type) for name, each in _NOTE_ORDER.items()
)
_NOTE_CONDITIONS: dict[str, ColumnElement[bool]] = {
    "key": _note_key_condition,
    "seq": _note_columns.seq == bindparam("seq", type_=BIG_INTEGER),
    "owner": and_(_note_owner_condition, sessions.c.owner == bindparam("owner", type_=IDENTIFIER)),
    "seen_at": and_(
        _note_columns.at >= bindparam("seen_at", type_=BIG_INTEGER),
        tuple_(*_NOTE_ORDER.values()) > tuple_(*_seen_note_binds),
    ),
}
"""The conditions by which notes are selected, each with the value that it binds."""


@cache
def build_line_note_list(names: tuple[str, ...]) -> Statement[Note]:
    """Build the list of an owner's notes on a line, in its order."""
    segments = lines.build_segments()
    query = (
        select(*_NOTE_LIST_COLUMNS).select_from(segments).join(notes, match_visible_notes(segments))
    )
    found = query.where(*(_NOTE_CONDITIONS[name] for name in names))
    return Statement(found.order_by(_note_columns.seq, _note_columns.key), row=Note)


@cache
def build_note_list(names: tuple[str, ...]) -> Statement[Note]:
    """Build the list of notes of existing sessions by the names of its conditions."""
    of_session = and_(
        sessions.c.tree_id == _note_columns.tree_id, sessions.c.id == _note_columns.session_id
    )
    query = select(*_NOTE_LIST_COLUMNS).select_from(notes).join(sessions, of_session)
    query = query.where(*(_NOTE_CONDITIONS[name] for name in names))
    ordered = query.order_by(*_NOTE_ORDER.values())
    return Statement(ordered.limit(bindparam("limit", type_=BIG_INTEGER)), row=Note)


LINE_NOTES = build_line_note_list(())
LINE_NOTES_OF_KEY = build_line_note_list(("key",))
LINE_NOTES_AT = build_line_note_list(("seq",))
LIST_NOTES_OF_KEY = build_note_list(("key",))
LIST_NOTES_OF_KEY_AFTER = build_note_list(("key", "seen_at"))
LIST_OWNED_NOTES = build_note_list(("owner",))
LIST_OWNED_NOTES_OF_KEY = build_note_list(("key", "owner"))


def annotate_message(
    connection: Connection, session_id: str, seq: int, key: str, value: Any, *, now: Now = None
) -> Note | None:
    """Note a JSON value under a key beside a message of a session's line; None removes the note.

    The message and the session's revision do not change. A message has one note for each key, the
    newest. The note is visible on every line of the same owner through the message, and is erased
    with the message. Raises SessionNotFound, PositionOutOfRange, InvalidValue.
    """
    name, text = _validate_note_key(key), None if value is None else encode_value("value", value)
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
    return _decode_note(Note(branch=place["branch"], seq=seq, key=name, **made))


def list_notes(
    connection: Connection,
    session_id: str | None = None,
    *,
    key: str | None = None,
    seq: int | None = None,
    owner: str | None = None,
    limit: int | None = None,
    after: Note | None = None,
) -> list[Note]:
    """Return notes: those on a session's line in its order, or over all sessions, oldest first.

    ``key`` selects the notes of one key, ``seq`` those of the message at a position of a session's
    line. A line has the notes of the session's owner, in whichever
    session they were made. Over all sessions the notes are those of an ``owner`` (None: any), at
    most ``limit`` of them (None: all), that follow ``after``, the last one already seen. Raises
    SessionNotFound, PositionOutOfRange, InvalidValue.
    """
    asked: dict[str, Any] = {} if key is None else {"key": _validate_note_key(key)}
    if session_id is not None:
        pointer = lines.load_pointer(connection, session_id)
        if seq is not None:
            pointer.check_message(seq)
            asked["seq"] = seq
        if owner not in (None, pointer.owner):
            found = []
        else:
            found = build_line_note_list(_list_note_conditions(asked)).rows(
                connection, **pointer.whole, owner=pointer.owner, **asked
            )
    elif seq is not None:
        raise InvalidValue("seq is a position on the line of a session; name the session")
    else:
        values = asked | ({} if owner is None else {"owner": validate_text("owner", owner)})
        if after is not None:
            if not isinstance(after, Note):
                raise InvalidValue(
                    f"after must be the last note already seen, not {quote_value(after)}"
                )
            values |= {f"seen_{name}": getattr(after, name) for name in _NOTE_ORDER}
        found = build_note_list(_list_note_conditions(values)).rows(
            connection, **values, limit=validate_limit(limit)
        )
    return [*map(_decode_note, found)]


def _list_note_conditions(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in _NOTE_CONDITIONS if name in values)


def _validate_note_key(key: str) -> str:
    text = validate_text("key", key)
    if not text:
        raise InvalidValue(f"key must be a text, such as 'rating', not {quote_value(key)}")
    return text


def _decode_note(note: Note) -> Note:
    """Return a note with its value decoded from text."""
    return note._replace(value=decode(note.value))
