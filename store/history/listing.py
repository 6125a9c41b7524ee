"""Lists and counts of sessions by owner, tree, prefix of the id and other conditions.

The arguments decide the conditions of a statement, so that each is answered from an index:
a page of an owner's sessions is a range of one, whatever others have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from operator import itemgetter
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
    or_,
    select,
    tuple_,
)

from ..clock import Now, require_moment
from ..database import BIG_INTEGER, Row, Statement, session_keys, sessions
from ..errors import InvalidValue, check_choice, quote_value
from ..records import FilePath, Session
from ..text import is_text
from . import lines
from .sessions import (
    SESSION_ROW_COLUMNS,
    decode_sessions,
    derive_metadata_keys,
    encode_metadata,
    load_session,
    validate_folder,
    validate_text,
)

_session_id_column = sessions.c.id
_seen_moment = bindparam("moment", type_=BIG_INTEGER)
_seen_id = bindparam("id", type_=_session_id_column.type)


def _get_second(moment: str) -> ColumnElement[int]:
    """Build the second of a bound moment."""
    return bindparam(moment, type_=BIG_INTEGER) // literal_column("1000", BIG_INTEGER)


LIST_ORDERS: dict[str, dict[ColumnElement[Any], ColumnElement[Any]]] = {
    "active": {
        sessions.c.updated_second: _get_second("moment"),
        sessions.c.updated_at: _seen_moment,
        _session_id_column: _seen_id,
    },
    "created": {sessions.c.created_at: _seen_moment, _session_id_column: _seen_id},
}
"""The orders of lists, newest first: their columns, and the values of the last session seen.

The second of the last activity is indexed, not its moment, since most appends change the moment
only. Within a second the sessions of a page are sorted (`load_page_rows`).
"""
_SESSION_CONDITIONS = {
    "archived": sessions.c.archived == bindparam("archived"),
    "owner": sessions.c.owner == bindparam("owner", type_=_session_id_column.type),
    "tree": sessions.c.tree_id == bindparam("tree", type_=BIG_INTEGER),
    "prefix": and_(
        _session_id_column >= bindparam("prefix", type_=_session_id_column.type),
        _session_id_column < bindparam("end", type_=_session_id_column.type),
    ),
    "since": and_(
        sessions.c.updated_second >= _get_second("since"),
        sessions.c.updated_at >= bindparam("since", type_=BIG_INTEGER),
    ),
    "until": and_(
        sessions.c.updated_second <= _get_second("until"),
        sessions.c.updated_at < bindparam("until", type_=BIG_INTEGER),
    ),
    "source": sessions.c.source == bindparam("source", type_=_session_id_column.type),
    "made_here": sessions.c.source.is_(None),
    "project": or_(
        sessions.c.project_root == bindparam("project"),
        *(
            func.substr(sessions.c.project_root, 1, func.length(bindparam(below)))
            == bindparam(below)
            for below in ("below", "below_on_windows")
        ),
    ),
    "title": func.lower(sessions.c.title).like(func.lower(bindparam("title")), escape="\\"),
    "parents": or_(
        sessions.c.forked_from.is_not(None),
        ~exists().where(
            session_keys.c.tree_id == sessions.c.tree_id,
            session_keys.c.session_id == sessions.c.id,
            session_keys.c.key == literal_column("'\"parent_session\"'"),
        ),
    ),
}
"""What sessions can be asked for by."""
_UNINDEXED_ARCHIVED = "looked up"
_SESSION_CONDITIONS[_UNINDEXED_ARCHIVED] = sessions.c.archived + literal_column("0") == bindparam(
    "archived"
)
"""Whether one is archived, without an index: else all would be walked in order of activity."""
_ESCAPED_IN_TITLES = re.compile(r"[\\%_]")
_LAST_CODE_POINT = "\U0010ffff"
"""The last code point: what begins with a text stands before that text and this."""


class ListRequest(NamedTuple):
    """What a list is of: the values of its conditions, and where it begins."""

    values: dict[str, Any]
    order: str
    after: Session | None

    @property
    def bound(self) -> dict[str, Any]:
        """The values that its statement binds."""
        if self.after is None:
            return self.values
        moment = self.after.updated_at if self.order == "active" else self.after.created_at
        return {**self.values, "moment": moment, "id": self.after.id}


def _name_conditions(values: Collection[str]) -> tuple[str, ...]:
    """Return the conditions that have values, in the order of their table."""
    return (*(name for name in _SESSION_CONDITIONS if name in values), *filter(_is_key, values))


KEYS_LIMIT = 16
"""How many keys of metadata may be asked for at once."""


def _match_key(keys: FromClause, name: str) -> ColumnElement[bool]:
    """Build the condition for a session's key that has a value, bound as ``value_of`` its name."""
    return and_(
        keys.c.tree_id == sessions.c.tree_id,
        keys.c.session_id == sessions.c.id,
        keys.c.key == bindparam(name, type_=_session_id_column.type),
        keys.c.value == bindparam(f"value_of_{name}", type_=_session_id_column.type),
    )


@cache
def build_session_list(
    names: tuple[str, ...], order: str, behind: bool = False, *, by_second: bool = False
) -> Statement[Row]:
    """Build the list of sessions by the names of its conditions; ``behind`` continues a list.

    ``by_second`` leaves those of the same second in any order, so that nothing is sorted.
    """
    seen = LIST_ORDERS[order]
    query = _build_session_search(select(*SESSION_ROW_COLUMNS), names)
    if behind:
        query = query.where(tuple_(*seen) < tuple_(*seen.values()))
    ordered = query.order_by(*(column.desc() for column in [*seen][: 1 if by_second else None]))
    return Statement(ordered.limit(bindparam("limit", type_=BIG_INTEGER)))


@cache
def build_session_count(names: tuple[str, ...]) -> Statement[Any]:
    """Build the count of sessions by the names of its conditions."""
    return Statement(_build_session_search(select(func.count()), names))


def _is_key(name: str) -> bool:
    return name.startswith("key")


def _build_session_search(query: Select[Any], names: tuple[str, ...]) -> Select[Any]:
    """Build the search for the sessions that meet conditions, beginning with the narrowest."""
    keys = [name for name in names if _is_key(name)]
    others = {*names} - {*keys}
    if keys and others == {"archived"}:
        first = session_keys.alias("first")
        found = query.select_from(first).join(sessions, _match_key(first, keys.pop(0)))
    elif others & {"prefix", "tree"}:
        found = query.select_from(sessions)
    else:
        return query.select_from(sessions).where(
            *_list_conditions(names), *map(_match_any_key, keys)
        )
    others = (others - {"archived"}) | {_UNINDEXED_ARCHIVED}
    return found.where(*_list_conditions(others), *map(_match_any_key, keys))


def _list_conditions(names: Collection[str]) -> Iterator[ColumnElement[bool]]:
    return (condition for name, condition in _SESSION_CONDITIONS.items() if name in names)


def _match_any_key(name: str) -> ColumnElement[bool]:
    keys = session_keys.alias(f"of_{name}")
    return exists().where(_match_key(keys, name))


_BASE_CONDITIONS = ("archived",)
LIST_SESSIONS = build_session_list(_BASE_CONDITIONS, "active")
LIST_BY_SECOND = build_session_list(_BASE_CONDITIONS, "active", by_second=True)
LIST_BY_SECOND_AFTER = build_session_list(_BASE_CONDITIONS, "active", behind=True, by_second=True)
LIST_SESSIONS_AFTER = build_session_list(_BASE_CONDITIONS, "active", behind=True)
LIST_CREATED = build_session_list(_BASE_CONDITIONS, "created", behind=True)
LIST_OWNED_SESSIONS = build_session_list((*_BASE_CONDITIONS, "owner"), "active", behind=True)
LIST_OWNED_CREATED = build_session_list((*_BASE_CONDITIONS, "owner"), "created", behind=True)
LIST_TREE = build_session_list((*_BASE_CONDITIONS, "tree"), "active")
LIST_PREFIX = build_session_list((*_BASE_CONDITIONS, "prefix"), "active")
LIST_TAGGED = build_session_list((*_BASE_CONDITIONS, "key1", "key2"), "active")
LIST_OWNED_TAGGED = build_session_list((*_BASE_CONDITIONS, "owner", "key1"), "active", behind=True)
_FOUND_CONDITIONS = (*_BASE_CONDITIONS, "since", "until", "source", "project", "title", "parents")
LIST_FOUND = build_session_list(_FOUND_CONDITIONS, "active", behind=True)
COUNT_FOUND = build_session_count((*_BASE_CONDITIONS, "since", "until", "source", "project"))
LIST_OWNED_FOUND = build_session_list(
    (*_BASE_CONDITIONS, "owner", "made_here", "project"), "active"
)
COUNT_SESSIONS = build_session_count(_BASE_CONDITIONS)
COUNT_OWNED = build_session_count((*_BASE_CONDITIONS, "owner"))


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
    project: FilePath | None = None,
    source: str | None = None,
    since: Now = None,
    until: Now = None,
    title: str | None = None,
    parents: bool = False,
    order: str = "active",
) -> list[Session]:
    """Return at most ``limit`` sessions, newest first.

    By their last activity: messages count, metadata do not; with ``order="created"`` by when they
    were created, an order that no session changes. ``owner``, the ``prefix`` of ids, and a session
    of whose ``tree`` they are, itself and all forks, choose among them (None: all), and so does
    ``where``: keys that their metadata have, and the values of these, the rarest first.
    ``archived`` gives those that are archived instead of those that are not.

    ``project`` is a folder: their projects are there or below it. ``source`` is the program that
    they were imported from ("": none, they were made here). Their last activity was at or after
    ``since`` and before ``until``. ``title`` is a part of their titles, in any case. ``parents``
    leaves out sessions of subagents.

    ``after`` is the last one already seen, as it was returned. Then the list goes on behind it,
    though it was active again since, or was deleted. Its id alone tells where it stands now. Raises
    InvalidValue, and SessionNotFound for an id.
    """
    if type(limit) is not int or limit < 0:
        raise InvalidValue(f"limit must be a whole number from 0, not {quote_value(limit)}")
    check_choice(LIST_ORDERS, "order", order)
    values = _collect_condition_values(connection, owner, prefix, tree, archived)
    values |= _encode_filters(project, source, since, until, title, parents=parents)
    values |= _encode_key_values(where)
    if isinstance(after, str):
        after = load_session(connection, after)
    elif after is not None and not isinstance(after, Session):
        raise InvalidValue(f"after must be the last session already seen, not {quote_value(after)}")
    asked = ListRequest(values, order, after)
    return decode_sessions(load_page_rows(connection, asked, limit))


def load_page_rows(connection: Connection, asked: ListRequest, limit: int) -> list[Row]:
    """Return the rows of a page in order.

    The index of the last activity has its second. So the sessions of one second are sorted here;
    only where a page ends between two of them, the database sorts all of that second.
    """
    names, order = _name_conditions(asked.values), asked.order
    behind, bound = asked.after is not None, asked.bound
    if order == "active" and limit < lines.NO_LIMIT:
        by_second = build_session_list(names, order, behind, by_second=True)
        rows = by_second.rows(connection, limit=limit + 1, **bound)
        seconds = {row[_UPDATED_AT] // 1000 for row in rows[limit - 1 :]}
        if len(rows) <= limit or len(seconds) == 2:
            return sorted(rows[:limit], key=_get_activity, reverse=True)
    return build_session_list(names, order, behind).rows(connection, limit=limit, **bound)


_UPDATED_AT = Session._fields.index("updated_at")
_get_activity = itemgetter(_UPDATED_AT, Session._fields.index("id"))


def count_sessions(
    connection: Connection,
    *,
    owner: str | None = None,
    where: dict[str, Any] | None = None,
    prefix: str | None = None,
    tree: str | None = None,
    archived: bool = False,
    project: FilePath | None = None,
    source: str | None = None,
    since: Now = None,
    until: Now = None,
    title: str | None = None,
    parents: bool = False,
) -> int:
    """Return how many sessions there are, chosen as `sessions` chooses them.

    Raises InvalidValue, and SessionNotFound for a session whose ``tree`` is asked for.
    """
    values = _collect_condition_values(connection, owner, prefix, tree, archived)
    values |= _encode_filters(project, source, since, until, title, parents=parents)
    values |= _encode_key_values(where)
    statement = build_session_count(_name_conditions(values))
    return int(statement.value(connection, **values))


def _collect_condition_values(
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
        values |= bind_prefix(prefix)
    return values


def bind_prefix(prefix: str) -> dict[str, str]:
    """Return the texts between which those that begin alike are. Raises InvalidValue."""
    if not is_text(prefix):
        raise InvalidValue(f"prefix must be the beginning of an id, not {quote_value(prefix)}")
    return {"prefix": prefix, "end": prefix + _LAST_CODE_POINT}


def _encode_filters(
    project: FilePath | None,
    source: str | None,
    since: Now,
    until: Now,
    title: str | None,
    *,
    parents: bool,
) -> dict[str, Any]:
    """Return the values of the conditions on facts that people know of a session."""
    values: dict[str, Any] = {"parents": True} if parents else {}
    if project is not None:
        values |= _encode_project(project)
    if source is not None:
        values |= {"source": validate_text("source", source)} if source else {"made_here": True}
    if since is not None:
        values["since"] = require_moment(since)
    if until is not None:
        values["until"] = require_moment(until)
    if title:
        escaped = _ESCAPED_IN_TITLES.sub(r"\\\g<0>", validate_text("title", title) or "")
        values["title"] = f"%{escaped}%"
    return values


def _encode_project(project: FilePath) -> dict[str, str]:
    """Return the values of the condition that a project is a folder, or is below it."""
    folder = (validate_folder(project) or "").rstrip("/\\")
    return {"project": folder, "below": f"{folder}/", "below_on_windows": f"{folder}\\"}


def _encode_key_values(where: dict[str, Any] | None) -> dict[str, str]:
    """Return the values by which keys of metadata are asked for."""
    encode_metadata(where)
    if where and len(where) > KEYS_LIMIT:
        raise InvalidValue(f"where has {len(where)} keys, the limit is {KEYS_LIMIT}")
    values: dict[str, str] = {}
    for number, (key, value) in enumerate(derive_metadata_keys(where or {}), start=1):
        values |= {f"key{number}": key, f"value_of_key{number}": value}
    return values
