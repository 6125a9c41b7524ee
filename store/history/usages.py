"""The real cost of requests, as reported by providers: recorded at the head, read back by line.

A fork uses the usages that its source had recorded before the fork, and none that the source
records later, at whatever position. Only the order of writing distinguishes the two, so the number
of a usage holds this order: it begins with the newest branch of its tree at that time (times
`USAGES_PER_POSITION`), and ends with a number that is unique at its position. Each fork begins a
branch; so the usages visible to it have numbers with a smaller beginning than that branch.

Usages are listed, and summed by model, session, owner or day. A usage has one place, so it counts
once, for the session that made the request, however many forks continue from there. It also counts
if a rewind has left its answer, since it was paid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from ..database import BIG_INTEGER, Insertion, Statement, branches, sessions, usages
from ..errors import InvalidValue, check_choice, quote_value
from ..messages import decode_as
from ..records import Usage, UsageTotal
from . import lines
from .lines import NO_LIMIT, Line, Pointer
from .model_prices import FilePath, ModelPrices, load_prices
from .session_branches import BRANCH_QUERIES, USAGES_PER_POSITION
from .sessions import encode_object, validate_limit, validate_text

TOKENS_LIMIT = 2**62
"""More tokens than this are a mistake."""
COST_LIMIT = 10**12
"""More dollars than this are a mistake."""


class LastRequest(NamedTuple):
    """The request whose usage was recorded last: its last position, tokens and moment (ms)."""

    seq: int
    input: int
    output: int
    at: int


LAST_USAGE = BRANCH_QUERIES.statement("last_usage", LastRequest)
NEWEST_BRANCH = Statement(
    select(branches.c.branch)
    .where(branches.c.tree_id == bindparam("tree_id"))
    .order_by(branches.c.branch.desc())
    .limit(literal_column("1"))
)
LAST_NUMBERS = Statement(
    select(usages.c.seq, func.max(usages.c.usage % literal_column(str(USAGES_PER_POSITION))))
    .where(lines.match_run(usages))
    .group_by(usages.c.seq)
)

INSERT_USAGE = Insertion(usages)


class UsageInput(NamedTuple):
    """The cost of a request, as `record_usage` takes it."""

    input: int
    output: int
    cached: int = 0
    written: int = 0
    model: str | None = None
    provider: str | None = None
    details: dict[str, Any] | None = None
    cost: float | None = None
    seq: int | None = None
    now: Now = None


def record_usage(
    connection: Connection,
    session_id: str,
    *,
    input: int,  # noqa: A002 - the public name
    output: int,
    cached: int = 0,
    model: str | None = None,
    provider: str | None = None,
    written: int = 0,
    details: dict[str, Any] | None = None,
    cost: float | None = None,
    seq: int | None = None,
    now: Now = None,
) -> Usage:
    """Record the real cost of the request at the session's head, as the provider reports it.

    ``input`` are all tokens that were sent; ``cached`` and ``written`` those of them that were read
    from the provider's cache and put into it. (Anthropic's ``input_tokens`` exclude both: add all
    three.) ``model`` and ``provider`` are the provider's names, ``details`` is an object with any
    other values. ``cost`` is in US dollars, if it is known; else it follows from the price list at
    each read. The request held the messages up to ``seq`` (None: to the head), so record it before
    its answer is appended. The session's revision does not change. Raises SessionNotFound,
    PositionOutOfRange, InvalidValue.
    """
    request = UsageInput(input, output, cached, written, model, provider, details, cost, seq, now)
    row = _insert_usages(connection, session_id, [request])[0]
    from .model_prices import load_prices

    return decode_usage(row, load_prices().cost(row.model, row._asdict()))


def record_usages(connection: Connection, session_id: str, requests: Sequence[UsageInput]) -> None:
    """Record the cost of requests of a session, as `record_usage` does one by one."""
    _insert_usages(connection, session_id, requests)


def _insert_usages(
    connection: Connection, session_id: str, requests: Sequence[UsageInput]
) -> list[Usage]:
    """Write usages, each as the newest one at its position, and return the stored rows."""
    checked = [*map(_validate_request, requests)]
    pointer = lines.lock_session(connection, session_id)
    places = [lines.resolve_position(pointer, each.seq) for each in requests]
    first, last = min(places, default=0), max(places, default=0)
    known = LAST_NUMBERS.scan(connection, **pointer.line, first=first, last=last)
    numbers = Counter[int](dict(known))
    rows = []
    for values, place in zip(checked, places, strict=True):
        numbers[place] += 1
        usage = Usage(session_id, pointer.branch, place, **values, number=numbers[place])
        rows.append(usage)
    moment = NEWEST_BRANCH.value(connection, tree_id=pointer.tree_id) * USAGES_PER_POSITION
    INSERT_USAGE.insert_many(connection, [_build_usage_row(pointer, row, moment) for row in rows])
    return rows


def _validate_request(request: UsageInput) -> dict[str, Any]:
    """Return the column values of a request. Raises InvalidValue."""
    for name in ("input", "output", "cached", "written"):
        tokens = getattr(request, name)
        if type(tokens) is not int or not 0 <= tokens < TOKENS_LIMIT:
            raise InvalidValue(
                f"{name} must be a number of tokens from 0, not {quote_value(tokens)}"
            )
    parts = request.cached + request.written
    if parts > request.input:
        raise InvalidValue(
            f"input must include the cached and written tokens, so "
            f"{request.input:,} tokens cannot hold {parts:,}; add them to it"
        )
    values = request._asdict()
    del values["seq"], values["now"]
    return values | {
        "model": validate_text("model", request.model),
        "provider": validate_text("provider", request.provider),
        "details": encode_object("details", request.details),
        "cost": _validate_cost(request.cost),
        "at": require_moment(request.now),
    }


def _build_usage_row(pointer: Pointer, row: Usage, moment: int) -> tuple[Any, ...]:
    values = {**row._asdict(), **pointer.line, "usage": moment + row.number}
    return tuple(values[name] for name in INSERT_USAGE.columns)


def decode_usage(row: Usage, cost: float | None) -> Usage:
    """Return a usage with its details decoded from text.

    ``cost`` is that of the price list; a recorded cost takes precedence.
    """
    text: Any = row.details
    details = decode_as(dict, text) if text else {}
    return row._replace(details=details, cost=cost if row.cost is None else row.cost)


def _validate_cost(cost: float | None) -> float | None:
    """Return the column value of a cost. Raises InvalidValue."""
    if cost is None:
        return None
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or not 0 <= cost <= COST_LIMIT:
        raise InvalidValue(f"cost must be a number of US dollars from 0, not {quote_value(cost)}")
    return float(cost)


def find_last_usage(line: Line, last: int) -> LastRequest | None:
    """Return the last usage recorded on a line up to a position that its session can see."""
    values = {**line.pointer.session, **line.pointer.line, "last": last, "never": NO_LIMIT}
    return LAST_USAGE.row(line.connection, **values)


_usage_columns = usages.c
_cache_written = func.coalesce(_usage_columns.written, literal_column("0"))
_usage_number: ColumnElement[int] = _usage_columns.usage % literal_column(str(USAGES_PER_POSITION))
_USAGE_FIELDS: dict[str, ColumnElement[Any]] = {
    **dict(_usage_columns.items()),
    "session_id": sessions.c.id,
    "written": _cache_written,
    "number": _usage_number,
}
_TOKEN_FIELDS = ("input", "output", "cached", "written")
_USAGE_LIST_COLUMNS = [_USAGE_FIELDS[name].label(name) for name in Usage._fields]

_USAGE_ORDER = {
    "at": _usage_columns.at,
    "session_id": sessions.c.id,
    "branch": _usage_columns.branch,
    "seq": _usage_columns.seq,
    "number": _usage_number,
}
"""The order of lists, oldest first, by the fields of a usage: it is unique for each usage."""
_seen_usage_binds = (
    bindparam(f"seen_{name}", type_=each.type) for name, each in _USAGE_ORDER.items()
)
_USAGE_CONDITIONS = {
    "session_id": and_(
        sessions.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        sessions.c.id == bindparam("session_id", type_=sessions.c.id.type),
    ),
    "owner": sessions.c.owner == bindparam("owner", type_=sessions.c.id.type),
    "since": _usage_columns.at >= bindparam("since", type_=BIG_INTEGER),
    "until": _usage_columns.at < bindparam("until", type_=BIG_INTEGER),
    "seen_at": and_(
        _usage_columns.at >= bindparam("seen_at", type_=BIG_INTEGER),
        tuple_(*_USAGE_ORDER.values()) > tuple_(*_seen_usage_binds),
    ),
}
"""The conditions by which usages are selected, each with the value that it binds."""

DAY_MS = 86_400_000
TOTAL_KEYS: dict[str, ColumnElement[Any]] = {
    "model": _usage_columns.model,
    "session": sessions.c.id,
    "owner": sessions.c.owner,
    "day": _usage_columns.at // literal_column(str(DAY_MS), BIG_INTEGER),
}
"""The keys by which usages are added up."""


class UsageSum(NamedTuple):
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
def build_usage_list(names: tuple[str, ...]) -> Statement[Usage]:
    """Build the list of usages by the names of its conditions."""
    found = _filter_usages(select(*_USAGE_LIST_COLUMNS), names).order_by(*_USAGE_ORDER.values())
    return Statement(found.limit(bindparam("limit", type_=BIG_INTEGER)), row=Usage)


@cache
def build_usage_sums(by: str, names: tuple[str, ...]) -> Statement[UsageSum]:
    """Build the sums of usages by the names of their conditions, with and without a cost apart."""
    key = TOTAL_KEYS[by].label("key")
    apart = (key, _usage_columns.model, _usage_columns.cost.is_(null()))
    sums = (cast(func.sum(_USAGE_FIELDS[name]), BIG_INTEGER).label(name) for name in _TOKEN_FIELDS)
    requests, paid = func.count().label("requests"), func.sum(_usage_columns.cost).label("paid")
    query = select(key, _usage_columns.model, requests, *sums, paid)
    return Statement(_filter_usages(query, names).group_by(*apart).order_by(key), row=UsageSum)


def _filter_usages(query: Select[Any], names: tuple[str, ...]) -> Select[Any]:
    """Build the query for the usages that meet conditions, without those of erased sessions."""
    on_branch = and_(
        branches.c.tree_id == _usage_columns.tree_id, branches.c.branch == _usage_columns.branch
    )
    of_session = and_(
        sessions.c.tree_id == branches.c.tree_id,
        sessions.c.id == branches.c.session_id,
    )
    joined = query.select_from(usages).join(branches, on_branch).join(sessions, of_session)
    return joined.where(*(_USAGE_CONDITIONS[name] for name in names))


LIST_USAGES = build_usage_list(("since", "until", "seen_at"))
LIST_SESSION_USAGES = build_usage_list(("session_id",))
LIST_OWNED_USAGES = build_usage_list(("owner",))
SUM_SESSION_USAGES = build_usage_sums("model", ("session_id",))
SUM_OWNED_USAGES = build_usage_sums("model", ("owner",))
SUM_USAGES_BY_DAY = build_usage_sums("day", ("since", "until"))


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
    values = _collect_usage_values(connection, session_id, owner, since, until)
    if after is not None:
        if not isinstance(after, Usage):
            raise InvalidValue(
                f"after must be the last usage already seen, not {quote_value(after)}"
            )
        values |= {f"seen_{name}": getattr(after, name) for name in _USAGE_ORDER}
    statement = build_usage_list(_list_usage_conditions(values))
    rows = statement.rows(connection, **values, limit=validate_limit(limit))
    return [decode_usage(row, costs.cost(row.model, row._asdict())) for row in rows]


def compute_usage_totals(
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
    check_choice(TOTAL_KEYS, "by", by)
    costs = load_prices(prices)
    values = _collect_usage_values(connection, session_id, owner, since, until)
    rows = build_usage_sums(by, _list_usage_conditions(values)).rows(connection, **values)
    totals = [
        _build_usage_total(key, [*sums], costs) for key, sums in groupby(rows, attrgetter("key"))
    ]
    if by == "day":
        return [
            each._replace(name=(EPOCH + timedelta(days=int(each.name or 0))).date().isoformat())
            for each in totals
        ]
    return sorted(
        totals,
        key=lambda each: (-(each.cost or 0.0), -(each.input + each.output), each.name or ""),
    )


def _collect_usage_values(
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


def _list_usage_conditions(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in _USAGE_CONDITIONS if name in values)


def _build_usage_total(key: Any, sums: list[UsageSum], prices: ModelPrices) -> UsageTotal:
    """Return the total of usages."""
    costs = [
        each.paid if each.paid is not None else prices.cost(each.model, each._asdict())
        for each in sums
    ]
    known = [cost for cost in costs if cost is not None]
    pairs = zip(sums, costs, strict=True)
    return UsageTotal(
        key,
        **{name: sum(map(attrgetter(name), sums)) for name in ("requests", *_TOKEN_FIELDS)},
        cost=sum(known) if known else None,
        unpriced=sum(each.requests for each, cost in pairs if cost is None),
    )
