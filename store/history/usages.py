"""What requests really cost, as providers said: recorded at the head, read back by line."""

from __future__ import annotations

from sqlalchemy import Connection, func, literal_column, select

from ..clock import Now, given
from ..database import Insertion, Statement, usages
from ..errors import InvalidValue
from ..records import Usage
from . import lines
from .lines import Line, line_cte
from .places import NEVER, Pointer

TOKENS_LIMIT = 2**62
"""More tokens than this are a mistake."""

_line = line_cte()
_counts = usages.c.seq <= _line.c.last

LAST_USAGE = Statement(
    select(*(usages.c[name] for name in Usage._fields))
    .select_from(_line)
    .join(usages, lines.on_branch(usages, _line) & _counts)
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
    counts = {"input": input, "output": output, "cached": cached}
    for name, tokens in counts.items():
        _check_tokens(name, tokens)
    moment = given(now)
    pointer = lines.lock(connection, session_id)
    usage = Usage(pointer.head, **counts, at=moment)
    _add(connection, pointer, usage)
    return usage


def _add(connection: Connection, pointer: Pointer, usage: Usage) -> None:
    """Write a usage as the newest one at its position."""
    number = NEXT_USAGE.value(connection, **pointer.line, seq=usage.seq)
    INSERT_USAGE.run(connection, **pointer.line, **usage._asdict(), usage=number)


def _check_tokens(name: str, tokens: int) -> None:
    if type(tokens) is not int or not 0 <= tokens < TOKENS_LIMIT:
        raise InvalidValue(f"{name} is a number of tokens from 0, not {tokens!r}")


def last_usage(line: Line, last: int) -> Usage | None:
    """Return the usage recorded last on a line, up to a position."""
    return LAST_USAGE.row(line.connection, **line.pointer.line, last=last, newest=NEVER)
