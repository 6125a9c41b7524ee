"""What requests really cost, as providers said: recorded at the head, read back by line."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, func, literal_column, select

from ..clock import Now, given
from ..database import Insertion, Statement, usages
from ..errors import InvalidValue
from ..records import Usage
from . import lines
from .lines import NEVER, Pointer, line_cte

TOKENS_LIMIT = 2**62
"""More tokens than this are a mistake."""

_line = line_cte()

LAST_USAGE = Statement(
    select(*(usages.c[name] for name in Usage._fields))
    .select_from(_line)
    .join(
        usages,
        (usages.c.tree_id == bindparam("tree_id"))
        & (usages.c.branch == _line.c.branch)
        & (usages.c.seq <= _line.c.last),
    )
    .order_by(usages.c.seq.desc(), usages.c.usage.desc())
    .limit(literal_column("1")),
    row=Usage,
)

_newest = func.coalesce(func.max(usages.c.usage), literal_column("0"))
NEXT_USAGE = Statement(
    select(_newest + literal_column("1")).where(lines.at(usages)),
)

INSERT_USAGE = Insertion(usages)


def record_usage(
    connection: Connection,
    session_id: str,
    *,
    input: int,  # noqa: A002 - the public name
    output: int,
    cached: int = 0,
    now: Now = None,
) -> Usage:
    """Record what the request at the session's head really cost, as the provider said.

    Raises InvalidValue.
    """
    for name, tokens in (("input", input), ("output", output), ("cached", cached)):
        _check_tokens(name, tokens)
    moment = given(now)
    pointer = lines.lock(connection, session_id)
    number = NEXT_USAGE.value(connection, **pointer.line, seq=pointer.head)
    usage = Usage(pointer.head, input, output, cached, moment)
    values = {**usage._asdict(), "usage": number}
    INSERT_USAGE.run(connection, **pointer.line, **values)
    return usage


def _check_tokens(name: str, tokens: int) -> None:
    if type(tokens) is not int or not 0 <= tokens < TOKENS_LIMIT:
        raise InvalidValue(f"{name} is a number of tokens from 0, not {tokens!r}")


def last_usage(connection: Connection, pointer: Pointer, last: int) -> Usage | None:
    """Return the usage recorded last on a line, up to a position."""
    return LAST_USAGE.row(connection, **pointer.line, last=last, newest=NEVER)
