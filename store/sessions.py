"""Sessions: create, find, list, rename. Operations take a connection; the faces open and end the transaction."""

from __future__ import annotations

import os
import secrets
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, bindparam, insert, literal_column, select, update

from . import lines
from .clock import Now, given
from .errors import InvalidValue, SessionExists, SessionNotFound
from .messages import decode, encode, is_text
from .records import Session
from .schema import BIG, branches, compaction_records, session_ids, sessions
from .statements import Row, Statement

ID_LIMIT = 512
"""Code points a session id may have."""

CLAIM_ID = Statement(
    sqlalchemy.text("INSERT INTO session_ids (id, tree_id) VALUES (:id, :tree_id) ON CONFLICT DO NOTHING")
)
INSERT_BRANCH = Statement(
    insert(branches).values({column.name: bindparam(column.name, type_=column.type) for column in branches.columns})
)
INSERT_SESSION = Statement(
    insert(sessions).values({column.name: bindparam(column.name, type_=column.type) for column in sessions.columns})
)
NEWEST_RECORD = Statement(
    select(compaction_records.c.compaction)
    .where(compaction_records.c.tree_id == bindparam("tree_id"))
    .order_by(compaction_records.c.compaction.desc())
    .limit(literal_column("1"))
)
_COLUMNS = (
    sessions.c.id,
    sessions.c.title,
    sessions.c.head,
    sessions.c.project_root,
    sessions.c.metadata,
    sessions.c.created_at,
    sessions.c.updated_at,
    sessions.c.forked_from,
    sessions.c.forked_at,
    sessions.c.head_branch,
)
SESSION = Statement(
    select(*_COLUMNS)
    .select_from(session_ids)
    .join(sessions, (sessions.c.tree_id == session_ids.c.tree_id) & (sessions.c.id == session_ids.c.id))
    .where(session_ids.c.id == bindparam("session_id"))
)
_BY_ACTIVITY = (sessions.c.updated_at.desc(), sessions.c.id.desc())
LIST_SESSIONS = Statement(select(*_COLUMNS).order_by(*_BY_ACTIVITY).limit(bindparam("limit", type_=BIG)))
LIST_SESSIONS_AFTER = Statement(
    select(*_COLUMNS)
    .where(
        sqlalchemy.tuple_(sessions.c.updated_at, sessions.c.id)
        < sqlalchemy.tuple_(bindparam("updated_at", type_=BIG), bindparam("id", type_=sessions.c.id.type))
    )
    .order_by(*_BY_ACTIVITY)
    .limit(bindparam("limit", type_=BIG))
)
UPDATE_SESSION = Statement(
    update(sessions)
    .where(sessions.c.tree_id == bindparam("tree"), sessions.c.id == bindparam("session_id"))
    .values(
        title=bindparam("title"),
        metadata=bindparam("metadata"),
        updated_at=bindparam("updated_at"),
    )
)


def create_session(
    connection: Connection,
    session_id: str | None = None,
    *,
    title: str | None = None,
    project_root: str | os.PathLike[str] | None = None,
    metadata: dict[str, Any] | None = None,
    fold_case: bool = False,
    now: Now = None,
) -> Session:
    """Create a session with an empty line, the root of a new tree; its id is the caller's or a new UUIDv7.

    File paths in tool calls are told apart relative to ``project_root``, ignoring case with ``fold_case`` (A1.7).
    Raises SessionExists where the id is taken, InvalidValue for an id, title or metadata that cannot be stored.
    """
    moment = given(now)
    tree_id = secrets.randbits(63)
    values = {
        "tree_id": tree_id,
        "id": claim(connection, session_id, tree_id, moment),
        "head_branch": 1,
        "head": 0,
        "last_rewind": None,
        "created_at": moment,
        "updated_at": moment,
        "forked_from": None,
        "forked_at": None,
        "fold_case": int(fold_case),
        "title": checked_text("title", title),
        "project_root": checked_text(
            "project_root", os.fspath(project_root) if isinstance(project_root, os.PathLike) else project_root
        ),
        "metadata": _metadata_text(metadata),
    }
    return insert_session(connection, values)


def session(connection: Connection, session_id: str) -> Session:
    """Return one session. Raises SessionNotFound."""
    row = SESSION.row(connection, session_id=session_id) if is_text(session_id) else None
    if row is None:
        raise SessionNotFound(session_id)
    return _session(row)


def list_sessions(connection: Connection, *, limit: int = 100, after: str | None = None) -> list[Session]:
    """Return at most ``limit`` sessions, the last active first; ``after`` is the id of the last one already seen."""
    if type(limit) is not int or limit < 0:
        raise InvalidValue(f"limit is a whole number from 0, not {limit!r}")
    if after is None:
        return [_session(row) for row in LIST_SESSIONS.rows(connection, limit=limit)]
    seen = session(connection, after)
    rows = LIST_SESSIONS_AFTER.rows(connection, limit=limit, updated_at=seen.updated_at, id=seen.id)
    return [_session(row) for row in rows]


def rename_session(connection: Connection, session_id: str, title: str | None, *, now: Now = None) -> Session:
    """Give a session another title (None: none). Raises SessionNotFound, InvalidValue."""
    old = _locked(connection, session_id)
    return _update(connection, old, checked_text("title", title), _metadata_text(old[1].metadata), given(now))


def set_metadata(
    connection: Connection, session_id: str, metadata: dict[str, Any] | None, *, now: Now = None
) -> Session:
    """Give a session other metadata, a JSON object. Raises SessionNotFound, InvalidValue."""
    old = _locked(connection, session_id)
    return _update(connection, old, old[1].title, _metadata_text(metadata), given(now))


def _locked(connection: Connection, session_id: str) -> tuple[int, Session]:
    return lines.lock(connection, session_id).tree_id, session(connection, session_id)


def _update(
    connection: Connection, old: tuple[int, Session], title: str | None, metadata: str | None, moment: int
) -> Session:
    tree_id, before = old
    UPDATE_SESSION.run(
        connection, tree=tree_id, session_id=before.id, title=title, metadata=metadata, updated_at=moment
    )
    return session(connection, before.id)


def claim(connection: Connection, session_id: str | None, tree_id: int, moment: int) -> str:
    """Put a session's id, the caller's or a new one, into the look-up of ids."""
    if session_id is None:
        session_id = uuid7(moment)
    elif not is_text(session_id) or not 0 < len(session_id) <= ID_LIMIT:
        raise InvalidValue(f"a session id is a text of 1 to {ID_LIMIT} characters, not {session_id!r:.80}")
    if not CLAIM_ID.run(connection, id=session_id, tree_id=tree_id):
        raise SessionExists(session_id)
    return session_id


def insert_session(
    connection: Connection,
    values: dict[str, Any],
    *,
    parent: int | None = None,
    position: int = 0,
    records_seen: int = 0,
) -> Session:
    """Write a session and the branch that its head is on; a fork's hangs on a parent at a position."""
    INSERT_BRANCH.run(
        connection,
        tree_id=values["tree_id"],
        branch=values["head_branch"],
        parent_branch=parent,
        parent_position=position,
        session_id=values["id"],
        created_at=values["created_at"],
        records_seen=records_seen,
    )
    INSERT_SESSION.run(connection, **values)
    return session(connection, values["id"])


def newest_record(connection: Connection, tree_id: int) -> int:
    """Return the number of a tree's newest compaction record (0: none): what a new branch knows of its past."""
    row = NEWEST_RECORD.row(connection, tree_id=tree_id)
    return int(row[0]) if row else 0


def checked_text(name: str, value: str | None) -> str | None:
    """Return a text that can be stored. Raises InvalidValue naming it."""
    if value is not None and not is_text(value):
        raise InvalidValue(f"{name} is a text without NUL and lone surrogates, not {value!r:.80}")
    return value


def uuid7(moment: int) -> str:
    """Return a new UUID that begins with its moment in ms (RFC 9562); an id, never an order."""
    value = (moment & (2**48 - 1)) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _metadata_text(metadata: dict[str, Any] | None) -> str | None:
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise InvalidValue(f"metadata is an object, not {type(metadata).__name__}")
    try:
        text = encode(metadata)
        kept = decode(text) == metadata
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"metadata is no JSON: {error}") from error
    if not kept:
        raise InvalidValue("metadata is no JSON: it has keys that are no texts, or tuples")
    return text if metadata else None


def _session(row: Row) -> Session:
    id_, title, head, project_root, metadata, *rest = row
    return Session(id_, title, head, project_root, decode(metadata) if metadata else {}, *rest)
