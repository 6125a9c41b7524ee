"""Lists of recorded usages, and their sums by model, session, owner or day.

A usage has one place, so it counts once, for the session that made the request, however many forks
continue from there. It also counts if a rewind has left its answer, since it was paid.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    select,
    tuple_,
)

from ..clock import EPOCH, Now, require_moment
from ..database import BIG, Statement, branches, sessions, usages
from ..errors import InvalidValue, one_of, quoted
from ..records import Usage, UsageTotal
from . import lines
from .model_prices import FilePath, PriceList, load_prices
from .session_branches import PLACES
from .sessions import validate_limit, validate_text
from .usages import told

_u = usages.c
_written = func.coalesce(_u.written, literal_column("0"))
_number: ColumnElement[int] = _u.usage % literal_column(str(PLACES))
_FIELDS: dict[str, ColumnElement[Any]] = {
    **dict(_u.items()),
    "session_id": sessions.c.id,
    "written": _written,
    "number": _number,
}
_TOKENS = ("input", "output", "cached", "written")
_COLUMNS = [_FIELDS[name].label(name) for name in Usage._fields]

_IN_ORDER = {
    "at": _u.at,
    "session_id": sessions.c.id,
    "branch": _u.branch,
    "seq": _u.seq,
    "number": _number,
}
"""The order of lists, oldest first, by the fields of a usage: it is unique for each usage."""
_seen = (bindparam(f"seen_{name}", type_=each.type) for name, each in _IN_ORDER.items())
_CONDITIONS = {
    "session_id": and_(
        sessions.c.tree_id == bindparam("tree_id", type_=BIG),
        sessions.c.id == bindparam("session_id", type_=sessions.c.id.type),
    ),
    "owner": sessions.c.owner == bindparam("owner", type_=sessions.c.id.type),
    "since": _u.at >= bindparam("since", type_=BIG),
    "until": _u.at < bindparam("until", type_=BIG),
    "seen_at": and_(
        _u.at >= bindparam("seen_at", type_=BIG),
        tuple_(*_IN_ORDER.values()) > tuple_(*_seen),
    ),
}
"""The conditions by which usages are selected, each with the value that it binds."""

A_DAY = 86_400_000
KEYS: dict[str, ColumnElement[Any]] = {
    "model": _u.model,
    "session": sessions.c.id,
    "owner": sessions.c.owner,
    "day": _u.at // literal_column(str(A_DAY), BIG),
}
"""The keys by which usages are added up."""


class Sum(NamedTuple):
    """The tokens of some usages of one model; ``paid`` is their recorded cost (None: none)."""

    key: Any
    model: str | None
    requests: int
    input: int
    output: int
    cached: int
    written: int
    paid: float | None


@cache
def listed(names: tuple[str, ...]) -> Statement[Usage]:
    """Build the list of usages by the names of its conditions."""
    found = _found(select(*_COLUMNS), names).order_by(*_IN_ORDER.values())
    return Statement(found.limit(bindparam("limit", type_=BIG)), row=Usage)


@cache
def summed(by: str, names: tuple[str, ...]) -> Statement[Sum]:
    """Build the sums of usages by the names of their conditions, with and without a cost apart."""
    key = KEYS[by].label("key")
    apart = (key, _u.model, _u.cost.is_(null()))
    sums = (cast(func.sum(_FIELDS[name]), BIG).label(name) for name in _TOKENS)
    requests, paid = func.count().label("requests"), func.sum(_u.cost).label("paid")
    query = select(key, _u.model, requests, *sums, paid)
    return Statement(_found(query, names).group_by(*apart).order_by(key), row=Sum)


def _found(query: Select[Any], names: tuple[str, ...]) -> Select[Any]:
    """Build the query for the usages that meet conditions, without those of erased sessions."""
    on_branch = and_(branches.c.tree_id == _u.tree_id, branches.c.branch == _u.branch)
    of_session = and_(
        sessions.c.tree_id == branches.c.tree_id,
        sessions.c.id == branches.c.session_id,
    )
    joined = query.select_from(usages).join(branches, on_branch).join(sessions, of_session)
    return joined.where(*(_CONDITIONS[name] for name in names))


LIST_USAGES = listed(("since", "until", "seen_at"))
LIST_OF_SESSION = listed(("session_id",))
LIST_OWNED = listed(("owner",))
SUM_OF_SESSION = summed("model", ("session_id",))
SUM_OWNED = summed("model", ("owner",))
SUM_OF_DAYS = summed("day", ("since", "until"))


def list_usages(
    connection: Connection,
    session_id: str | None = None,
    *,
    owner: str | None = None,
    since: Now = None,
    until: Now = None,
    limit: int | None = None,
    after: Usage | None = None,
    prices: FilePath | None = None,
) -> list[Usage]:
    """Return recorded usages, oldest first: of a session, of an owner's sessions, or of all.

    Each is returned once, for the session that made the request, however many forks continue from
    its place; usages whose answers a rewind left are included. They were recorded from ``since`` on
    and before ``until`` (None: any), are at most ``limit`` (None: all), and follow ``after``, the
    last one already seen. ``prices`` is a TOML file with prices of one's own, which take precedence
    over the list that comes with the store. Raises SessionNotFound, InvalidValue.
    """
    costs = load_prices(prices)
    values = _values(connection, session_id, owner, since, until) | _behind(after)
    statement = listed(_names(values))
    rows = statement.rows(connection, **values, limit=validate_limit(limit))
    return [told(row, costs.cost(row.model, row._asdict())) for row in rows]


def usage_totals(
    connection: Connection,
    session_id: str | None = None,
    *,
    by: str = "model",
    owner: str | None = None,
    since: Now = None,
    until: Now = None,
    prices: FilePath | None = None,
) -> list[UsageTotal]:
    """Return usages added up ``by`` model, session, owner or day, the dearest first, days in order.

    The usages are selected as by `usages`; days are those of UTC. The cost of usages recorded
    without one is that of the price list; each total gives the number of requests without a price.
    Raises SessionNotFound, InvalidValue.
    """
    one_of(KEYS, "by", by)
    costs = load_prices(prices)
    values = _values(connection, session_id, owner, since, until)
    rows = summed(by, _names(values)).rows(connection, **values)
    totals = [_total(key, [*sums], costs) for key, sums in groupby(rows, attrgetter("key"))]
    if by == "day":
        return [
            each._replace(name=(EPOCH + timedelta(days=int(each.name or 0))).date().isoformat())
            for each in totals
        ]
    return sorted(totals, key=_thrift)


def _values(
    connection: Connection, session_id: str | None, owner: str | None, since: Now, until: Now
) -> dict[str, Any]:
    """Return the values of the conditions that are given."""
    values: dict[str, Any] = {"owner": validate_text("owner", owner)}
    values["since"] = None if since is None else require_moment(since)
    values["until"] = None if until is None else require_moment(until)
    asked = {name: value for name, value in values.items() if value is not None}
    if session_id is None:
        return asked
    return asked | lines.load_pointer(connection, session_id).session


def _behind(after: Usage | None) -> dict[str, Any]:
    """Return the values that locate the last usage already seen."""
    if after is None:
        return {}
    if not isinstance(after, Usage):
        raise InvalidValue(f"after is the last usage already seen, not {quoted(after)}")
    return {f"seen_{name}": getattr(after, name) for name in _IN_ORDER}


def _names(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in _CONDITIONS if name in values)


def _total(key: Any, sums: list[Sum], prices: PriceList) -> UsageTotal:
    """Return the total of usages."""
    costs = [
        (each.paid if each.paid is not None else prices.cost(each.model, each._asdict()))
        for each in sums
    ]
    known = [cost for cost in costs if cost is not None]
    pairs = zip(sums, costs, strict=True)
    return UsageTotal(
        key,
        **{name: sum(map(attrgetter(name), sums)) for name in ("requests", *_TOKENS)},
        cost=sum(known) if known else None,
        unpriced=sum(each.requests for each, cost in pairs if cost is None),
    )


def _thrift(total: UsageTotal) -> tuple[float, int, str]:
    """Return a sort key that puts the cheaper of two totals after the other."""
    return -(total.cost or 0.0), -(total.input + total.output), total.name or ""
