"""The real cost of requests, as reported by providers: recorded at the head, read back by line.

A fork uses the usages that its source had recorded before the fork, and none that the source
records later, at whatever position. Only the order of writing distinguishes the two, so the number
of a usage holds this order: it begins with the newest branch of its tree at that time (times
`USAGES_PER_POSITION`), and ends with a number that is unique at its position. Each fork begins a
branch; so the usages visible to it have numbers with a smaller beginning than that branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, literal_column, select

from ..clock import Now, require_moment
from ..database import Insertion, Statement, branches, usages
from ..errors import InvalidValue, quote_value
from ..messages import decode_as
from ..records import Usage
from . import lines
from .lines import NO_LIMIT, Line, Pointer
from .session_branches import BRANCH_QUERIES, USAGES_PER_POSITION
from .sessions import encode_object, validate_text

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
    numbers = _number_usages(connection, pointer, places)
    rows = [
        Usage(session_id, pointer.branch, place, **values, number=number)
        for values, place, number in zip(checked, places, numbers, strict=True)
    ]
    moment = NEWEST_BRANCH.value(connection, tree_id=pointer.tree_id) * USAGES_PER_POSITION
    INSERT_USAGE.insert_many(connection, [_build_usage_row(pointer, row, moment) for row in rows])
    return rows


def _validate_request(request: UsageInput) -> dict[str, Any]:
    """Return the column values of a request. Raises InvalidValue."""
    for name in ("input", "output", "cached", "written"):
        tokens = getattr(request, name)
        if type(tokens) is not int or not 0 <= tokens < TOKENS_LIMIT:
            raise InvalidValue(f"{name} is a number of tokens from 0, not {quote_value(tokens)}")
    parts = request.cached + request.written
    if parts > request.input:
        raise InvalidValue(
            f"input is all that was sent, what is cached and written included, so "
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


def _number_usages(
    connection: Connection, pointer: Pointer, places: Sequence[int]
) -> Iterator[int]:
    """Yield a number for each usage that is unique at its position."""
    first, last = min(places, default=0), max(places, default=0)
    known = LAST_NUMBERS.scan(connection, **pointer.line, first=first, last=last)
    taken = Counter[int](dict(known))
    for place in places:
        taken[place] += 1
        yield taken[place]


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
        raise InvalidValue(f"cost is a number of US dollars from 0, not {quote_value(cost)}")
    return float(cost)


def find_last_usage(line: Line, last: int) -> LastRequest | None:
    """Return the last usage recorded on a line up to a position that its session can see."""
    values = {**line.pointer.session, **line.pointer.line, "last": last, "never": NO_LIMIT}
    return LAST_USAGE.row(line.connection, **values)
