"""Sessions listed and counted: whose, of which tree, with which beginning of their ids.

What is asked for decides which conditions a statement has, so that each is answered from an index:
a page of an owner's sessions is a range of one, whatever others have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    tuple_,
)

from ..database import BIG, Row, Statement, session_ids, session_keys, sessions
from ..errors import InvalidValue, one_of, quoted
from ..records import Session
from ..text import is_text
from . import lines
from .keys import metadata_keys
from .sessions import COLUMNS, decode_session, encode_metadata, session, validate_text

ORDERS = {
    "active": sessions.c.updated_at,
    "created": sessions.c.created_at,
}
"""The orders of lists, newest first, each by its moment and then by ids."""
_id = sessions.c.id
_CONDITIONS = {
    "archived": sessions.c.archived == bindparam("archived"),
    "owner": sessions.c.owner == bindparam("owner", type_=_id.type),
    "tree": sessions.c.tree_id == bindparam("tree", type_=BIG),
    "prefix": and_(
        session_ids.c.id >= bindparam("prefix", type_=_id.type),
        session_ids.c.id < bindparam("end", type_=_id.type),
    ),
}
"""What sessions can be asked for by."""
_LOOKED_UP = "looked up"
_CONDITIONS[_LOOKED_UP] = sessions.c.archived + literal_column("0") == bindparam("archived")
"""Whether one is archived, without an index: else all would be walked in order of activity."""
_LAST = "\U0010ffff"
"""The last code point: what begins with a text stands before that text and this."""


class Asked(NamedTuple):
    """What a list is of: the values of its conditions, and where it begins."""

    values: dict[str, Any]
    order: str
    after: Session | None

    @property
    def names(self) -> tuple[str, ...]:
        """The conditions that it has."""
        of_keys = filter(_is_key, self.values)
        return (*(name for name in _CONDITIONS if name in self.values), *of_keys)

    @property
    def bound(self) -> dict[str, Any]:
        """The values that its statement binds."""
        if self.after is None:
            return self.values
        moment = getattr(self.after, ORDERS[self.order].name)
        return {**self.values, "moment": moment, "id": self.after.id}


KEYS_LIMIT = 16
"""How many keys of metadata may be asked for at once."""


def _has(keys: FromClause, name: str) -> ColumnElement[bool]:
    """Build the condition for a session's key that has a value, bound as ``value_of`` its name."""
    return and_(
        keys.c.tree_id == sessions.c.tree_id,
        keys.c.session_id == sessions.c.id,
        keys.c.key == bindparam(name, type_=_id.type),
        keys.c.value == bindparam(f"value_of_{name}", type_=_id.type),
    )


@cache
def select_sessions(names: tuple[str, ...], order: str, behind: bool = False) -> Statement[Row]:
    """Build the list of sessions by the names of its conditions; ``behind`` one already seen."""
    moment = ORDERS[order]
    query = _found(select(*COLUMNS), names)
    if behind:
        seen = tuple_(bindparam("moment", type_=BIG), bindparam("id", type_=_id.type))
        query = query.where(tuple_(moment, _id) < seen)
    ordered = query.order_by(moment.desc(), _id.desc())
    return Statement(ordered.limit(bindparam("limit", type_=BIG)))


@cache
def select_count(names: tuple[str, ...]) -> Statement[Any]:
    """Build the count of sessions by the names of its conditions."""
    return Statement(_found(select(func.count()), names))


def _is_key(name: str) -> bool:
    return name.startswith("key")


def _found(query: Select[Any], names: tuple[str, ...]) -> Select[Any]:
    """Build the search for the sessions that meet conditions, beginning with the narrowest."""
    keys = [name for name in names if _is_key(name)]
    others = {*names} - {*keys}
    if keys and others == {"archived"}:
        first = session_keys.alias("first")
        found = query.select_from(first).join(sessions, _has(first, keys.pop(0)))
    elif "prefix" in others:
        found = query.select_from(session_ids).join(sessions, lines.SESSION_OF_ID)
    elif "tree" in others:
        found = query.select_from(sessions)
    else:
        return query.select_from(sessions).where(*_conditions(names), *map(_has_any, keys))
    others = (others - {"archived"}) | {_LOOKED_UP}
    return found.where(*_conditions(others), *map(_has_any, keys))


def _conditions(names: Collection[str]) -> Iterator[ColumnElement[bool]]:
    return (condition for name, condition in _CONDITIONS.items() if name in names)


def _has_any(name: str) -> ColumnElement[bool]:
    keys = session_keys.alias(f"of_{name}")
    return exists().where(_has(keys, name))


_ALL = ("archived",)
LIST_SESSIONS = select_sessions(_ALL, "active")
LIST_SESSIONS_AFTER = select_sessions(_ALL, "active", behind=True)
LIST_CREATED = select_sessions(_ALL, "created", behind=True)
LIST_OWNED = select_sessions((*_ALL, "owner"), "active", behind=True)
LIST_OWNED_CREATED = select_sessions((*_ALL, "owner"), "created", behind=True)
LIST_TREE = select_sessions((*_ALL, "tree"), "active")
LIST_PREFIX = select_sessions((*_ALL, "prefix"), "active")
LIST_TAGGED = select_sessions((*_ALL, "key1", "key2"), "active")
LIST_OWNED_TAGGED = select_sessions((*_ALL, "owner", "key1"), "active", behind=True)
COUNT_SESSIONS = select_count(_ALL)
COUNT_OWNED = select_count((*_ALL, "owner"))


def list_sessions(
    connection: Connection,
    *,
    limit: int = 100,
    after: Session | str | None = None,
    owner: str | None = None,
    where: dict[str, Any] | None = None,
    prefix: str | None = None,
    tree: str | None = None,
    archived: bool = False,
    order: str = "active",
) -> list[Session]:
    """Return at most ``limit`` sessions, newest first.

    By their last activity: messages count, metadata do not; with ``order="created"`` by when they
    were created, an order that no session changes. ``owner``, the ``prefix`` of ids, and a session
    of whose ``tree`` they are, itself and all forks, choose among them (None: all), and so does
    ``where``: keys that their metadata have, and the values of these, the rarest first.
    ``archived`` gives those that are archived instead of those that are not.

    ``after`` is the last one already seen, as it was returned. Then the list goes on behind it,
    though it was active again since, or was deleted. Its id alone tells where it stands now. Raises
    InvalidValue, and SessionNotFound for an id.
    """
    if type(limit) is not int or limit < 0:
        raise InvalidValue(f"limit is a whole number from 0, not {quoted(limit)}")
    one_of(ORDERS, "order", order)
    values = _values(connection, owner, prefix, tree, archived) | _keys(where)
    asked = Asked(values, order, _last_seen(connection, after))
    statement = select_sessions(asked.names, order, asked.after is not None)
    return [*map(decode_session, statement.rows(connection, limit=limit, **asked.bound))]


def count_sessions(
    connection: Connection,
    *,
    owner: str | None = None,
    where: dict[str, Any] | None = None,
    prefix: str | None = None,
    tree: str | None = None,
    archived: bool = False,
) -> int:
    """Return how many sessions there are, chosen as `sessions` chooses them.

    Raises InvalidValue, and SessionNotFound for a session whose ``tree`` is asked for.
    """
    values = _values(connection, owner, prefix, tree, archived) | _keys(where)
    count: int = select_count(Asked(values, "active", None).names).value(connection, **values)
    return count


def _last_seen(connection: Connection, after: Session | str | None) -> Session | None:
    if isinstance(after, str):
        return session(connection, after)
    if after is not None and not isinstance(after, Session):
        raise InvalidValue(f"after is the last session already seen, not {quoted(after)}")
    return after


def _values(
    connection: Connection,
    owner: str | None,
    prefix: str | None,
    tree: str | None,
    archived: bool,
) -> dict[str, Any]:
    """Return the values of the conditions that are given."""
    values: dict[str, Any] = {"archived": int(bool(archived))}
    if owner is not None:
        values["owner"] = validate_text("owner", owner)
    if tree is not None:
        values["tree"] = lines.load_pointer(connection, tree).tree_id
    if prefix:
        if not is_text(prefix):
            raise InvalidValue(f"prefix is the beginning of a session's id, not {quoted(prefix)}")
        values |= {"prefix": prefix, "end": prefix + _LAST}
    return values


def _keys(where: dict[str, Any] | None) -> dict[str, str]:
    """Return the values by which keys of metadata are asked for."""
    encode_metadata(where)
    if where and len(where) > KEYS_LIMIT:
        raise InvalidValue(f"where has {len(where)} keys, the limit is {KEYS_LIMIT}")
    values: dict[str, str] = {}
    for number, (key, value) in enumerate(metadata_keys(where or {}), start=1):
        values |= {f"key{number}": key, f"value_of_key{number}": value}
    return values
