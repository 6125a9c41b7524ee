"""Whether the keys that sessions are found by are those of their metadata."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, bindparam, select

from ..database import BIG, Statement, session_keys, sessions
from ..errors import Damaged
from ..history import keys
from ..messages import decode_as
from ..records import Finding
from ..text import Fields

_k = session_keys
KEYS = Statement(
    select(_k.c.key, _k.c.value).where(
        _k.c.tree_id == bindparam("tree_id", type_=BIG),
        _k.c.session_id == bindparam("session_id"),
    )
)


_asked = select(sessions.c.tree_id, sessions.c.id, sessions.c.metadata)
METADATA_OF_TREE = Statement(_asked.where(sessions.c.tree_id == bindparam("tree_id", type_=BIG)))


def check_keys(connection: Connection, tree_id: int | None = None) -> Iterator[Finding]:
    """Yield the sessions, of a tree or of all, whose keys are not those of their metadata."""
    rows = (
        connection.execute(_asked)
        if tree_id is None
        else METADATA_OF_TREE.rows(connection, tree_id=tree_id)
    )
    for tree, session_id, text in rows:
        metadata = _object(text)
        there = KEYS.rows(connection, tree_id=tree, session_id=session_id)
        place = f"session {session_id!r}"
        if metadata is None:
            yield Finding("facts", place, "its metadata are no JSON object")
        elif {*there} != {*keys.metadata_keys(metadata)}:
            yield Finding("facts", place, "its keys do not follow from its metadata")


def _object(text: str | None) -> Fields | None:
    """Return what metadata are stored as, None where they are no object."""
    try:
        return decode_as(dict, text) if text else {}
    except Damaged:
        return None
