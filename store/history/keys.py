"""The keys of a session's metadata, each with its value as a text, so that an index finds them.

They are derived from the metadata, and are written anew whenever it changes.
"""

from __future__ import annotations

import hashlib
from typing import Any

from sqlalchemy import Connection, bindparam, delete

from ..database import BIG_INTEGER, Insertion, Statement, session_keys
from ..messages import encode

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
