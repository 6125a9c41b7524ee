"""Whether the keys that sessions are found by are those of their metadata."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, bindparam, select

from ..database import BIG, Statement, session_keys, sessions
from ..history import keys
from ..messages import decode
from ..records import Finding

_k = session_keys
KEYS = Statement(
    select(_k.c.key, _k.c.value).where(
        _k.c.tree_id == bindparam("tree_id", type_=BIG),
        _k.c.session_id == bindparam("session_id"),
    )
)


def check_keys(connection: Connection) -> Iterator[Finding]:
    """Yield the sessions whose keys are not those of their metadata."""
    for tree_id, session_id, text in connection.execute(
        select(sessions.c.tree_id, sessions.c.id, sessions.c.metadata)
    ):
        there = KEYS.rows(connection, tree_id=tree_id, session_id=session_id)
        if {*there} != {*keys.keys_of(decode(text) if text else {})}:
            place = f"session {session_id!r}"
            yield Finding("facts", place, "its keys do not follow from its metadata")
