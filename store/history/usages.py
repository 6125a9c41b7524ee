"""The real cost of requests, as reported by providers: recorded at the head, read back by line.

A fork uses the usages that its source had recorded before the fork, and none that the source
records later, at whatever position. Only the order of writing distinguishes the two, so the number
of a usage holds this order: it begins with the newest branch of its tree at that time (times
`USAGES_PER_POSITION`), and ends with a number that is unique at its position. Each fork begins a
branch; so the usages visible to it have numbers with a smaller beginning than that branch.

Usages are listed, and summed by model, session, owner, project, program or time. A usage has one
place, so it counts once, for the session that made the request, however many forks continue from
there. It also counts if a rewind has left its answer, since it was paid. The view `usage_costs`
prices each usage by the same rows in SQL.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    null,
    select,
    tuple_,
)

from ..clock import EPOCH, Now, check_zone_name, load_zone, require_moment
from ..database import (
    BIG_INTEGER,
    Insertion,
    Row,
    Statement,
    branches,
    count_at_commit,
    pause_gc,
    sessions,
    usages,
)
from ..errors import InvalidValue, check_choice, quote_value
from ..formats import read_response_usage
from ..messages import Message, decode_as
from ..records import FilePath, Usage, UsageTotal
from ..tokens import estimate_message_tokens
from . import lines
from .kept_usages import PART_MASK, build_kept_sums
from .lines import NO_LIMIT, Line, Pointer
from .model_prices import DAY_MS, PriceList, normalize_model_name
from .price_rows import load_model_prices, load_price_list
from .request_rows import LAST_REQUEST, RANGE_BINDS, RequestRange, link_usage
from .session_branches import BRANCH_QUERIES, USAGES_PER_POSITION
from .sessions import encode_object, validate_limit, validate_text

_TOKEN_FIELDS = ("input", "output", "cached", "written")
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
    cached: int


UsagePlace = tuple[int, int, int]
"""The branch, position and number of a usage."""

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
    response: object = None,
    *,
    input: int | None = None,  # noqa: A002 - the public name
    output: int | None = None,
    cached: int = 0,
    model: str | None = None,
    provider: str | None = None,
    written: int = 0,
    details: dict[str, Any] | None = None,
    cost: float | None = None,
    received: Message | None = None,
    seq: int | None = None,
    now: Now = None,
) -> Usage:
    """Record the real cost of the request at the session's head, as the provider reports it.

    ``response`` is the response of a client of OpenAI (chat or Responses), Anthropic or Gemini, or
    its usage, as an object or a dict. Its tokens, model and provider are recorded, and the usage in
    its own words in ``details["told"]``.

    Without a response ``input`` are all tokens that were sent; ``cached`` and ``written`` those of
    them that were read from the provider's cache and put into it. (Anthropic's ``input_tokens``
    exclude both: add all three.) ``model`` and ``provider`` are the provider's names, ``details``
    is an object with any other values. ``cost`` is in US dollars, if it is known; else it follows
    from the prices at each read.

    ``received`` is the received part of an answer whose stream broke off: its tokens are counted
    where the response tells fewer, and ``details["estimated"]`` is true. Unknown input is 0,
    and `check` ignores such a usage.

    The request held the messages up to ``seq`` (None: to the head), so record it before its answer
    is appended. The session's revision does not change. Raises SessionNotFound, PositionOutOfRange,
    InvalidValue.
    """
    values = (cached, written, model, provider, details, cost, seq, now)
    request = UsageInput(cast(int, input), cast(int, output), *values)
    if response is not None:
        request = _add_response(request, response)
    if received is not None:
        request = _estimate_output(request, received)
    owner, (row,) = _insert_usages(connection, session_id, [request])
    return decode_usage(row, owner, load_model_prices(connection, row.model, owner))


def _add_response(request: UsageInput, response: object) -> UsageInput:
    """Return a usage with the tokens of a response; names that it has already take precedence.

    Raises InvalidValue if it has tokens already.
    """
    if any(tokens is not None for tokens in (request.input, request.output)):
        raise InvalidValue("give the response, or input= and output=, not both")
    told = read_response_usage(response, request.model)
    return request._replace(
        **{name: getattr(told, name) for name in (*_TOKEN_FIELDS, "model")},
        provider=request.provider or told.provider,
        details=_add_details(request, told=told.told),
    )


def _estimate_output(request: UsageInput, received: Message) -> UsageInput:
    """Return a usage with the tokens of the received part of an answer. Raises InvalidValue."""
    if not isinstance(received, Mapping):
        raise InvalidValue(f"received must be a message, not {quote_value(received)}")
    return request._replace(
        input=request.input or 0,
        output=max(request.output or 0, estimate_message_tokens(received)),
        details=_add_details(request, estimated=True),
    )


def _add_details(request: UsageInput, **more: Any) -> Any:
    """Return the details of a usage with more of them; a value that is no object as it is."""
    details = request.details
    return {**more, **(details or {})} if isinstance(details, dict | None) else details


def record_usages(connection: Connection, session_id: str, requests: Sequence[UsageInput]) -> None:
    """Record the cost of requests of a session, as `record_usage` does one by one."""
    _insert_usages(connection, session_id, requests)


def _insert_usages(
    connection: Connection, session_id: str, requests: Sequence[UsageInput]
) -> tuple[str | None, list[Usage]]:
    """Write usages, each as the newest one at its position; return the owner, the stored rows."""
    checked = [*map(_validate_request, requests)]
    pointer = lines.lock_session(connection, session_id)
    NEWEST_BRANCH.send(connection, tree_id=pointer.tree_id)
    LAST_REQUEST.send(connection, **pointer.session)
    places = [lines.resolve_position(pointer, each.seq) for each in requests]
    rows = [
        Usage(session_id, pointer.branch, place, **values, number=number)
        for values, (place, number) in zip(
            checked, _number_places(connection, pointer, places), strict=True
        )
    ]
    moment = NEWEST_BRANCH.value(connection, tree_id=pointer.tree_id) * USAGES_PER_POSITION
    INSERT_USAGE.insert_many(connection, [_build_usage_row(pointer, row, moment) for row in rows])
    for row in rows:
        _count_usage(connection, row)
    for row in rows[-1:]:
        link_usage(connection, pointer, row.seq, row.number)
    return pointer.owner, rows


def _count_usage(connection: Connection, usage: Usage) -> None:
    """Add a usage to the metrics of the store."""
    model = usage.model or "unknown"
    count_at_commit(connection, ("usage", model, "requests"))
    for name in _TOKEN_FIELDS:
        count_at_commit(connection, ("usage", model, name), getattr(usage, name))


def _number_places(
    connection: Connection, pointer: Pointer, places: list[int]
) -> Iterator[tuple[int, int]]:
    """Yield each position with the next number of a usage there."""
    first, last = min(places, default=0), max(places, default=0)
    known = LAST_NUMBERS.scan(connection, **pointer.line, first=first, last=last)
    numbers = Counter[int](dict(known))
    for place in places:
        numbers[place] += 1
        yield place, numbers[place]


def _validate_request(request: UsageInput) -> dict[str, Any]:
    """Return the column values of a request. Raises InvalidValue."""
    for name in _TOKEN_FIELDS:
        tokens = getattr(request, name)
        if type(tokens) is not int or not 0 <= tokens < TOKENS_LIMIT:
            raise InvalidValue(
                f"{name} must be a number of tokens from 0, not {quote_value(tokens)}; give the"
                " response of a provider, or input= and output="
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
    values["base_model"] = row.model and normalize_model_name(row.model)
    return tuple(values[name] for name in INSERT_USAGE.columns)


def decode_usage(row: Usage, owner: str | None, prices: PriceList) -> Usage:
    """Return a usage with its details decoded from text, and its cost, if none was recorded."""
    text: Any = row.details
    details = decode_as(dict, text) if text else {}
    cost = row.cost
    if cost is None:
        cost = prices.cost(row.model, owner, row.at, row._asdict())
    return row._replace(details=details, cost=cost)


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
    return LAST_USAGE.row(line.connection, **_list_usage_bounds(line, last))


def send_last_usage(line: Line, last: int) -> None:
    """Send a server the query for the last usage ahead."""
    LAST_USAGE.send(line.connection, **_list_usage_bounds(line, last))


def _list_usage_bounds(line: Line, last: int) -> dict[str, Any]:
    return {**line.pointer.session, **line.pointer.line, "last": last, "never": NO_LIMIT}


_usage_columns = usages.c
_cache_written = func.coalesce(_usage_columns.written, literal_column("0"))
_usage_number: ColumnElement[int] = _usage_columns.usage % literal_column(str(USAGES_PER_POSITION))
_USAGE_FIELDS: dict[str, ColumnElement[Any]] = {
    **dict(_usage_columns.items()),
    "session_id": sessions.c.id,
    "written": _cache_written,
    "number": _usage_number,
}
_USAGE_LIST_COLUMNS = [
    sessions.c.owner,
    *(_USAGE_FIELDS[name].label(name) for name in Usage._fields),
]

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
    "last_seq": _usage_columns.seq.between(RANGE_BINDS["first_seq"], RANGE_BINDS["last_seq"]),
    "owner": sessions.c.owner == bindparam("owner", type_=sessions.c.id.type),
    "since": _usage_columns.at >= bindparam("since", type_=BIG_INTEGER),
    "until": _usage_columns.at < bindparam("until", type_=BIG_INTEGER),
    "seen_at": and_(
        _usage_columns.at >= bindparam("seen_at", type_=BIG_INTEGER),
        tuple_(*_USAGE_ORDER.values()) > tuple_(*_seen_usage_binds),
    ),
}
"""The conditions by which usages are selected, each with the value that it binds."""

QUARTER_MS = 900_000
"""The clocks of all time zones differ by whole quarters of an hour."""

TOTAL_COLUMNS: dict[str, ColumnElement[Any]] = {
    "model": _usage_columns.model,
    "session": sessions.c.id,
    "owner": sessions.c.owner,
    "project": sessions.c.project_root,
    "source": sessions.c.source,
    "day": _usage_columns.at // literal_column(str(DAY_MS), BIG_INTEGER),
    "quarter": _usage_columns.at // literal_column(str(QUARTER_MS), BIG_INTEGER),
    "parts": PART_MASK,
}
"""The columns by which usages are added up."""
PERIODS: dict[str, Callable[[datetime], str]] = {
    "day": lambda moment: moment.date().isoformat(),
    "week": lambda moment: "{:04}-W{:02}".format(*moment.isocalendar()[:2]),
    "month": lambda moment: moment.date().isoformat()[:7],
}
"""The keys of time, and the names of their values."""
TOTAL_KEYS = ("model", "session", "owner", "project", "source", *PERIODS)
"""The keys by which usages are added up."""


class UsageSum(NamedTuple):
    """The tokens of some usages of one model; ``paid`` is their recorded cost (None: none).

    The usages agree in those of the other fields by which they were added up.
    """

    model: str | None
    session: str | None
    owner: str | None
    project: str | None
    source: str | None
    day: int | None
    quarter: int | None
    parts: int | None
    requests: int
    input: int
    output: int
    cached: int
    written: int
    paid: float | None

    @property
    def at(self) -> int:
        """The beginning of the day or quarter of the usages (ms), 0 without one."""
        if self.quarter is not None:
            return self.quarter * QUARTER_MS
        return (self.day or 0) * DAY_MS


@cache
def build_usage_list(names: tuple[str, ...]) -> Statement[Row]:
    """Build the list of usages, after their owners, by the names of its conditions."""
    found = _filter_usages(select(*_USAGE_LIST_COLUMNS), names).order_by(*_USAGE_ORDER.values())
    return Statement(found.limit(bindparam("limit", type_=BIG_INTEGER)))


@cache
def build_usage_sums(by: tuple[str, ...], names: tuple[str, ...]) -> Statement[UsageSum]:
    """Build the sums of usages by columns and by the names of their conditions.

    Usages with and without a recorded cost are apart.
    """
    keys = [TOTAL_COLUMNS[name] for name in by]
    columns = (column if name in by else null() for name, column in TOTAL_COLUMNS.items())
    sums = (func.sum(_USAGE_FIELDS[name]).cast(BIG_INTEGER) for name in _TOKEN_FIELDS)
    values = (*columns, func.count(), *sums, func.sum(_usage_columns.cost))
    query = select(*map(ColumnElement.label, values, UsageSum._fields))
    apart = (*keys, _usage_columns.cost.is_(null()))
    return Statement(_filter_usages(query, names).group_by(*apart), row=UsageSum)


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
LIST_PLACED_USAGES = build_usage_list(("session_id", "last_seq"))
_request = func.row_number().over(order_by=[*_USAGE_ORDER.values()]).label("request")
_place = (_usage_columns.branch, _usage_columns.seq, _usage_number.label("number"))
_numbered = _filter_usages(select(_request, *_place), ("session_id",)).subquery("numbered")
LIST_USAGE_PLACES = Statement(
    select(_numbered)
    .where(
        _numbered.c.request.between(RANGE_BINDS["start"], RANGE_BINDS["stop"]),
        _numbered.c.seq.between(RANGE_BINDS["first_seq"], RANGE_BINDS["last_seq"]),
    )
    .order_by(_numbered.c.request.desc())
    .limit(RANGE_BINDS["limit"])
)
"""The usages of a session, each with its number among them and its `UsagePlace`."""
LIST_OWNED_USAGES = build_usage_list(("owner",))
SUM_SESSION_USAGES = build_usage_sums(("model",), ("session_id",))
SUM_OWNED_USAGES = build_usage_sums(("model",), ("owner",))
SUM_USAGES_BY_DAY = build_usage_sums(("model", "day"), ("since", "until"))


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
    last one already seen. A usage without a recorded cost is priced by the prices of its UTC day.
    ``prices`` is a TOML file with prices that take precedence over the stored ones. Raises
    SessionNotFound, InvalidValue.
    """
    values = _collect_usage_values(connection, session_id, owner, since, until)
    if after is not None:
        if not isinstance(after, Usage):
            raise InvalidValue(
                f"after must be the last usage already seen, not {quote_value(after)}"
            )
        values |= {f"seen_{name}": getattr(after, name) for name in _USAGE_ORDER}
    values["limit"] = validate_limit(limit)
    return _load_usages(connection, values, load_price_list(connection, prices, owner))


def _load_usages(connection: Connection, values: dict[str, Any], prices: PriceList) -> list[Usage]:
    """Return the usages that meet the conditions of some values, oldest first."""
    rows = build_usage_list(_list_usage_conditions(values)).rows(connection, **values)
    with pause_gc(len(rows)):
        return [decode_usage(Usage(*row), of, prices) for of, *row in rows]


def list_numbered_usages(
    connection: Connection, pointer: Pointer, asked: RequestRange
) -> list[tuple[int, Usage]]:
    """Return the usages of a session in a range, oldest first, each after its number."""
    rows = LIST_USAGE_PLACES.rows(connection, **pointer.session, **asked._asdict())
    numbers: dict[UsagePlace, int] = {tuple(place): number for number, *place in reversed(rows)}
    found = load_placed_usages(connection, pointer, [*numbers])
    return [(number, found[place]) for place, number in numbers.items()]


def load_placed_usages(
    connection: Connection, pointer: Pointer, places: Sequence[UsagePlace]
) -> dict[UsagePlace, Usage]:
    """Return usages of a session by their branches, positions and numbers; more may be there."""
    seqs = [seq for _, seq, _ in places]
    if not seqs:
        return {}
    run = {"first_seq": min(seqs), "last_seq": max(seqs), "limit": NO_LIMIT}
    found = _load_usages(connection, pointer.session | run, load_price_list(connection))
    return {(each.branch, each.seq, each.number): each for each in found}


def compute_usage_totals(
    connection: Connection,
    session_id: str | None = None,
    *,
    by: str | Sequence[str] = "model",
    owner: str | None = None,
    since: Now = None,
    until: Now = None,
    prices: FilePath | None = None,
    zone: str | tzinfo = "UTC",
) -> list[UsageTotal]:
    """Return usages added up ``by`` a key or several, the dearest first, times in order.

    Keys are model, session, owner, project (the session's folder), source (its program), day, week
    (such as 2026-W07) and month. Given a list, the name of a total is a tuple in its order. Days
    begin in ``zone``, a name such as ``"Europe/Berlin"`` or a tzinfo. Usages are selected as by
    `usages`, and priced by the same prices; each total gives the number of requests without a
    price. Usages that an erasure kept count too, without a session and by the day in UTC. Raises
    SessionNotFound, InvalidValue.
    """
    keys = _validate_total_keys(by)
    clock = _validate_zone(zone)
    values = _collect_usage_values(connection, session_id, owner, since, until)
    costs = load_price_list(connection, prices, owner)
    columns = _list_total_columns(keys, costs, clock)
    conditions = _list_usage_conditions(values)
    sums = build_usage_sums(columns, conditions).rows(connection, **values)
    if session_id is None:
        kept = build_kept_sums(columns, conditions).rows(connection, **values)
        sums += itertools.starmap(UsageSum, kept)
    found: dict[tuple[str | None, ...], list[UsageSum]] = {}
    for row in sums:
        found.setdefault(_name_total(row, keys, clock), []).append(row)
    totals = sorted(
        (_build_usage_total(name, sums, costs) for name, sums in found.items()),
        key=partial(_rank_total, keys),
    )
    return [each._replace(name=each.name[0]) for each in totals] if isinstance(by, str) else totals


def _validate_total_keys(by: str | Sequence[str]) -> tuple[str, ...]:
    """Return the keys of totals. Raises InvalidValue."""
    keys = (by,) if isinstance(by, str) or not isinstance(by, Sequence) else tuple(by)
    if not keys:
        raise InvalidValue(f"by must name at least one of {', '.join(TOTAL_KEYS)}")
    for key in keys:
        check_choice(TOTAL_KEYS, "by", key)
    return keys


def _validate_zone(zone: str | tzinfo) -> tzinfo:
    """Return a time zone. Raises InvalidValue."""
    if isinstance(zone, tzinfo):
        return zone
    try:
        return load_zone(check_zone_name(zone))
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidValue(
            f"zone must be the name of a time zone, such as Europe/Berlin, not {quote_value(zone)}"
        ) from error


def _list_total_columns(keys: tuple[str, ...], prices: PriceList, clock: tzinfo) -> tuple[str, ...]:
    """Return the columns by which usages have to be added up, to be named and priced."""
    needed = {*keys, "model"}
    if prices.owners:
        needed.add("owner")
    if prices.has_gaps:
        needed.add("parts")
    if needed & PERIODS.keys() or prices.has_dates:
        is_local = needed & PERIODS.keys() and clock is not UTC
        needed.add("quarter" if is_local else "day")
    if "quarter" in needed:
        needed.discard("day")
    return tuple(name for name in TOTAL_COLUMNS if name in needed)


def _name_total(row: UsageSum, keys: tuple[str, ...], clock: tzinfo) -> tuple[str | None, ...]:
    """Return the values of keys in the order given."""
    moment = EPOCH + timedelta(milliseconds=row.at)
    local = moment if clock is UTC else moment.astimezone(clock)
    return tuple(PERIODS[key](local) if key in PERIODS else getattr(row, key) for key in keys)


def _rank_total(keys: tuple[str, ...], total: UsageTotal) -> tuple[Any, ...]:
    """Return the place of a total in the list: by time, then by cost, tokens and name."""
    names = [name or "" for name in total.name or ()]
    times = [name for key, name in zip(keys, names, strict=True) if key in PERIODS]
    return times, -(total.cost or 0.0), -(total.input + total.output), names


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


def _build_usage_total(
    name: tuple[str | None, ...], sums: list[UsageSum], prices: PriceList
) -> UsageTotal:
    """Return the total of usages."""
    costs = [
        each.paid
        if each.paid is not None
        else prices.cost(each.model, each.owner, each.at, each._asdict())
        for each in sums
    ]
    known = [cost for cost in costs if cost is not None]
    pairs = zip(sums, costs, strict=True)
    return UsageTotal(
        name,
        **{name: sum(map(attrgetter(name), sums)) for name in ("requests", *_TOKEN_FIELDS)},
        cost=math.fsum(known) if known else None,
        unpriced=sum(each.requests for each, cost in pairs if cost is None),
    )
