"""Sessions: create, find, list, rename.

Operations take a connection; the faces open and end the transaction.

The keys of a session's metadata are stored each with its value as a text, so that an index finds
them. They are derived from the metadata, and are written anew whenever it changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Collection, Iterable
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy
from sqlalchemy import Connection, bindparam, delete, literal_column, select

from ..clock import Now, require_moment
from ..database import (
    BIG_INTEGER,
    Insertion,
    Row,
    Statement,
    branches,
    compaction_records,
    get_read_mark,
    get_session_trees,
    select_positions,
    select_texts,
    session_keys,
    sessions,
)
from ..errors import InvalidValue, SessionExists, SessionNotFound, quote_value
from ..messages import decode_as, encode, find_json_problem
from ..records import TEXT_LIMIT, Session
from ..text import as_plain_str, is_text
from . import lines
from .ancestry import write_ancestors
from .imported_files import forget_file_states
from .lines import NO_LIMIT, generate_revision

VALUE_LIMIT = 200
"""Characters up to which the text of a value is kept; a longer one is replaced by its SHA-256."""
INSERT_KEYS = Insertion(session_keys)
DELETE_KEYS = Statement(
    delete(session_keys).where(
        session_keys.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        session_keys.c.session_id == bindparam("session_id"),
    )
)


def write_keys(
    connection: Connection, tree_id: int, session_id: str, metadata: dict[str, Any]
) -> None:
    """Write the keys of a session's metadata in place of the present ones."""
    DELETE_KEYS.run(connection, tree_id=tree_id, session_id=session_id)
    rows = [(tree_id, session_id, *each) for each in derive_metadata_keys(metadata)]
    INSERT_KEYS.insert_many(connection, rows)


def derive_metadata_keys(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the keys of metadata and their values as texts; equal values have equal texts."""
    return [(_shorten_value(key), _shorten_value(value)) for key, value in metadata.items()]


def _shorten_value(value: object) -> str:
    """Return a value as text, or the hash of its text if that is long."""
    text = encode(_sort_keys(value))
    if len(text) <= VALUE_LIMIT:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _sort_keys(value: object) -> object:
    """Return a JSON value with sorted keys in its objects, since their order has no meaning."""
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return list(map(_sort_keys, value))
    return value


SESSION_ID_LIMIT = 512
"""Code points a session id may have."""

METADATA_TEXT_LIMIT = 2**20
"""Characters that an app's own values, such as metadata, may have as JSON text."""

CLAIM_ID = Statement(
    sqlalchemy.text(
        "INSERT INTO session_ids (id, tree_id) VALUES (:id, :tree_id) ON CONFLICT DO NOTHING"
    )
)
INSERT_SESSION = Insertion(sessions)
NEWEST_RECORD = Statement(
    select(compaction_records.c.compaction)
    .where(compaction_records.c.tree_id == bindparam("tree_id"))
    .order_by(compaction_records.c.compaction.desc())
    .limit(literal_column("1"))
)
_RENAMED_COLUMNS = {"branch": "head_branch"}
_SESSION_COLUMN_NAMES = [_RENAMED_COLUMNS.get(name, name) for name in Session._fields]
_column_pairs = zip(_SESSION_COLUMN_NAMES, Session._fields, strict=True)
SESSION_ROW_COLUMNS = tuple(sessions.c[column].label(name) for column, name in _column_pairs)
"""The columns of a session."""
SESSION_BY_ID = Statement(select(*SESSION_ROW_COLUMNS).where(lines.match_session))
SESSION_OWNER = Statement(select(sessions.c.owner).where(lines.match_session))
SESSIONS_OF_TREES = Statement(
    select(sessions.c.tree_id, *SESSION_ROW_COLUMNS)
    .where(
        sessions.c.tree_id.in_(select_positions("trees")), sessions.c.id.in_(select_texts("ids"))
    )
    .order_by(sessions.c.tree_id, sessions.c.id)
)
"""Some sessions of some trees, which may have many more."""


def build_session_change(**values: Any) -> Statement[Row]:
    """Build an update of a session's row that returns the changed session."""
    return Statement(lines.update_session(**values).returning(*SESSION_ROW_COLUMNS))


SET_TITLE = build_session_change(title=bindparam("title"), **lines.ACTIVITY)
SET_METADATA = build_session_change(metadata=bindparam("metadata"))
SET_ORIGIN = build_session_change(source=bindparam("source"), file=bindparam("file"))
SET_ARCHIVED = build_session_change(archived=bindparam("archived"))


class BranchStem(NamedTuple):
    """A branch, and the position of the parent branch that it continues.

    ``records_seen`` is the newest compaction record of its past that is visible to it.
    """

    branch: int
    parent_branch: int | None
    parent_position: int
    records_seen: int


INSERT_BRANCH = Insertion(branches, "tree_id", *BranchStem._fields, "session_id", "created_at")
ROOT_STEM = BranchStem(1, None, 0, 0)
"""The first branch of a tree."""
NEW_SESSION_VALUES: dict[str, Any] = {
    "head": 0,
    "last_rewind": None,
    "forked_from": None,
    "forked_at": None,
    "archived": 0,
    "source": None,
    "file": None,
}
"""The values of a session that continues no other one; a fork replaces some of them."""


def create_session(
    connection: Connection,
    session_id: str | None = None,
    *,
    title: str | None = None,
    project_root: str | os.PathLike[str] | None = None,
    metadata: dict[str, Any] | None = None,
    owner: str | None = None,
    fold_case: bool = False,
    exist_ok: bool = False,
    now: Now = None,
) -> Session:
    """Create a session with an empty line, the root of a new tree.

    Its id is the caller's or a new UUIDv7. ``owner`` is any text that names its owner; it never
    changes.

    File paths in tool calls are compared relative to ``project_root``, ignoring case with
    ``fold_case``. With ``exist_ok`` an existing session of that id is returned unchanged, whatever
    the other arguments are. Raises SessionExists if the id is taken, InvalidValue for an id, title,
    owner or metadata that cannot be stored.
    """
    moment = require_moment(now)
    tree_id = secrets.randbits(63)
    values = {
        **NEW_SESSION_VALUES,
        "tree_id": tree_id,
        "created_at": moment,
        "updated_at": moment,
        "fold_case": int(bool(fold_case)),
        "title": validate_text("title", title),
        "project_root": validate_folder(project_root),
        "metadata": encode_metadata(metadata),
        "owner": validate_text("owner", owner),
    }
    try:
        claimed = claim_session_id(connection, session_id, tree_id, moment)
    except SessionExists as taken:
        if not exist_ok:
            raise
        lines.lock_session(connection, taken.session_id)  # reads of a step stay valid
        return load_session(connection, taken.session_id)
    return insert_session(connection, {**values, "id": claimed}, ROOT_STEM)


def load_session(connection: Connection, session_id: str) -> Session:
    """Return one session. Raises SessionNotFound."""
    stored = lines.find_session_row(connection, SESSION_BY_ID, session_id)
    if stored is None:
        raise SessionNotFound(session_id)
    return decode_session(stored)


def load_sessions(
    connection: Connection, wanted: Collection[str]
) -> dict[str, tuple[int, Session]]:
    """Return sessions with their trees, by their ids; those that exist."""
    ids = json.dumps([*wanted])
    trees = {*lines.TREES_OF_SESSIONS.values(connection, ids=ids)}
    rows = SESSIONS_OF_TREES.rows(connection, trees=json.dumps([*trees]), ids=ids)
    loaded = decode_sessions(row[1:] for row in rows)
    return {each.id: (row[0], each) for row, each in zip(rows, loaded, strict=True)}


def check_owner(connection: Connection, session_id: str, owner: str) -> None:
    """Raise SessionNotFound for a session of another owner, as for one that does not exist."""
    row = lines.find_session_row(connection, SESSION_OWNER, session_id)
    if row is None or row[0] != owner:
        raise SessionNotFound(session_id)


def rename_session(
    connection: Connection,
    session_id: str,
    title: str | None,
    *,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Give a session another title (None: none), if its revision is the expected one (None: any).

    Raises SessionNotFound, Conflict, InvalidValue.
    """
    moment, text = require_moment(now), validate_text("title", title)
    place = _lock_session_row(connection, session_id, expected)
    return decode_session(SET_TITLE.one(connection, **place, title=text, now=moment))


def set_metadata(
    connection: Connection,
    session_id: str,
    metadata: dict[str, Any] | None,
    *,
    merge: bool = False,
    expected: str | None = None,
) -> Session:
    """Give a session other metadata, a JSON object, or with ``merge`` change them in part.

    With ``merge``, ``metadata`` is a merge patch (RFC 7396): its keys are set, its keys with the
    value null are removed, objects within are merged likewise, and all other keys stay. No change
    that others make meanwhile is lost. Setting metadata is no activity: the session keeps its place
    in lists. With ``expected`` they are set only if that is the session's revision. Raises
    SessionNotFound, Conflict, InvalidValue.
    """
    text = encode_metadata(metadata)
    pointer = lines.lock_session(connection, session_id, expected)
    if merge:
        text = encode_metadata(
            apply_merge_patch(load_session(connection, session_id).metadata, metadata)
        )
    changed = decode_session(SET_METADATA.one(connection, **pointer.changed(), metadata=text))
    write_keys(connection, pointer.tree_id, session_id, changed.metadata)
    return changed


def set_origin(
    connection: Connection, session_id: str, source: str, file: str | None = None
) -> Session:
    """Tell which program and which file a session was imported from.

    An import tells it by itself. Raises SessionNotFound, InvalidValue.
    """
    origin = {"source": validate_text("source", source), "file": validate_text("file", file)}
    pointer = lines.lock_session(connection, session_id)
    forget_file_states(connection, pointer.tree_id, session_id)
    place = pointer.changed()
    return decode_session(SET_ORIGIN.one(connection, **place, **origin))


def archive_session(
    connection: Connection, session_id: str, *, expected: str | None = None
) -> Session:
    """Take a session out of the lists of active sessions; nothing else changes.

    Archiving is no activity. ``expected`` is the revision that the session must have (None: any).
    Raises SessionNotFound, Conflict.
    """
    return _set_archived(connection, session_id, expected, archived=True)


def unarchive_session(
    connection: Connection, session_id: str, *, expected: str | None = None
) -> Session:
    """Put a session back into the lists of active sessions, at its old place.

    ``expected`` is the revision that the session must have (None: any). Raises SessionNotFound,
    Conflict.
    """
    return _set_archived(connection, session_id, expected, archived=False)


def _set_archived(
    connection: Connection, session_id: str, expected: str | None, *, archived: bool
) -> Session:
    """Archive a session or take it back, if that has not been done yet."""
    place = _lock_session_row(connection, session_id, expected)
    known = load_session(connection, session_id)
    if known.archived == archived:
        return known
    return decode_session(SET_ARCHIVED.one(connection, **place, archived=int(archived)))


def apply_merge_patch(target: object, patch: object) -> Any:
    """Return a JSON value changed by a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = apply_merge_patch(kept.get(key), value)
    return kept


def _lock_session_row(
    connection: Connection, session_id: str, expected: str | None
) -> dict[str, Any]:
    """Lock a session for a change, and return the place of its row, with its next revision."""
    return lines.lock_session(connection, session_id, expected).changed()


def claim_session_id(
    connection: Connection, session_id: str | None, tree_id: int, moment: int
) -> str:
    """Put a new session's id into the look-up of ids: the caller's, or one made of the moment.

    Raises InvalidValue, and SessionExists if it is there already.
    """
    if session_id is None:
        begin = (moment & _MOMENT_MASK) << 80
        chance = secrets.randbits(12) << 64 | secrets.randbits(62)
        claimed = str(UUID(int=begin | _UUID_VERSION_BITS | chance))
    elif is_text(session_id) and 0 < len(session_id) <= SESSION_ID_LIMIT:
        claimed = as_plain_str(session_id)
    else:
        raise InvalidValue(
            f"a session id must be a text of 1 to {SESSION_ID_LIMIT} characters, "
            f"not {quote_value(session_id)}"
        )
    if not CLAIM_ID.count_changed(connection, id=claimed, tree_id=tree_id):
        raise SessionExists(claimed)
    return claimed


def insert_session(connection: Connection, values: dict[str, Any], stem: BranchStem) -> Session:
    """Write a session and the branch that its head is on."""
    session_id, moment = values["id"], values["created_at"]
    write_branch(connection, values["tree_id"], stem, session_id, moment)
    row = values | {
        "head_branch": stem.branch,
        "revision": generate_revision(),
        "updated_second": values["updated_at"] // 1000,
    }
    INSERT_SESSION.run(connection, **row)
    get_session_trees(connection).put(session_id, values["tree_id"], get_read_mark(connection))
    created = decode_session_fields(row)
    if created.metadata:
        write_keys(connection, values["tree_id"], session_id, created.metadata)
    return created


def write_branch(
    connection: Connection, tree_id: int, stem: BranchStem, session_id: str, moment: int
) -> None:
    """Write a branch of a session, and its ancestors."""
    INSERT_BRANCH.insert(connection, (tree_id, *stem, session_id, moment))
    if stem.parent_branch is not None:
        write_ancestors(connection, tree_id, stem.branch)


def load_newest_compaction(connection: Connection, tree_id: int) -> int:
    """Return the number of a tree's newest compaction record, the last one a new branch can see.

    0 if there is none.
    """
    return NEWEST_RECORD.value(connection, tree_id=tree_id) or 0


def validate_limit(limit: int | None) -> int:
    """Return the most rows that a list may have, None: all. Raises InvalidValue."""
    if limit is None:
        return NO_LIMIT
    if type(limit) is not int or limit < 0:
        raise InvalidValue(f"limit must be a whole number from 0, not {quote_value(limit)}")
    return limit


def validate_text(name: str, value: str | None) -> str | None:
    """Return a text that can be stored. Raises InvalidValue naming it."""
    if value is not None and not is_text(value):
        raise InvalidValue(
            f"{name} must be a text without NUL and lone surrogates, not {quote_value(value)}"
        )
    if value is not None and len(value) > TEXT_LIMIT:
        length = f"{len(value):,} characters, the limit is {TEXT_LIMIT:,}"
        raise InvalidValue(f"{name} has {length}")
    return None if value is None else as_plain_str(value)


_MOMENT_MASK = 2**48 - 1
"""The part of a moment in ms that a UUID has room for."""
_UUID_VERSION_BITS = 0x7 << 76 | 0b10 << 62
"""The bits of a UUID that mark its version (it begins with a moment) and its layout."""


def validate_folder(folder: str | os.PathLike[str] | None) -> str | None:
    """Return a folder as it is stored. Raises InvalidValue."""
    text = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    return validate_text("project_root", text)


def encode_metadata(metadata: dict[str, Any] | None) -> str | None:
    """Return metadata as text, None where they are empty. Raises InvalidValue."""
    return encode_object("metadata", metadata)


def encode_object(name: str, value: dict[str, Any] | None) -> str | None:
    """Return a JSON object as text, None where it is empty. Raises InvalidValue naming it."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidValue(f"{name} is an object, not {type(value).__name__}")
    return encode_value(name, value) if value else None


def encode_value(name: str, value: Any) -> str:
    """Return a JSON value as text. Raises InvalidValue naming it."""
    problem = find_json_problem(value)
    if problem:
        raise InvalidValue(f"{name} cannot be stored: {problem}")
    text = encode(value)
    if len(text) > METADATA_TEXT_LIMIT:
        length = f"{len(text):,} characters as JSON, the limit is {METADATA_TEXT_LIMIT:,}"
        raise InvalidValue(f"{name} has {length}")
    return text


def decode_session_fields(row: dict[str, Any]) -> Session:
    """Return the session of a row, given by the names of its columns."""
    return decode_session(_get_session_columns(row))


_get_session_columns: Callable[[dict[str, Any]], Row] = itemgetter(*_SESSION_COLUMN_NAMES)


def decode_session(row: Row) -> Session:
    """Return the session of a row of `SESSION_ROW_COLUMNS`."""
    return decode_sessions([row])[0]


def decode_sessions(rows: Iterable[Row]) -> list[Session]:
    """Return the sessions of rows of `SESSION_ROW_COLUMNS`; metadata and flags are decoded."""
    decoded = [*map(list, rows)]
    for fields in decoded:
        text = fields[_METADATA]
        fields[_METADATA] = decode_as(dict, text) if text else {}
        fields[_ARCHIVED] = fields[_ARCHIVED] != 0
    return [*map(_make_session, decoded)]


_METADATA, _ARCHIVED = map(Session._fields.index, ("metadata", "archived"))
_make_session: Callable[[Iterable[Any]], Session] = partial(tuple.__new__, Session)
"""Makes a session of its fields without a step of Python, since a list may have thousands."""
