"""Of what messages a summary is, and when they were said."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, literal_column, select

from ..database import Statement, messages
from ..history import lines
from ..view import ViewContext

PINNED_ROLES: tuple[ColumnElement[str], ...] = (
    literal_column("'system'"),
    literal_column("'developer'"),
)
"""The roles of messages that no compaction hides."""

_m = messages
_said_at = func.coalesce(_m.c.created_at, _m.c.stored_at)
_is_there = lines.in_run(_m)
_moments = select(_said_at).where(_is_there)
_told = _moments.where(_m.c.role.not_in(PINNED_ROLES))
FIRST_TIME = Statement(_told.order_by(_m.c.seq).limit(literal_column("1")))


_source = select(
    _m.c.seq,
    _m.c.digest,
    _said_at.label("at"),
)
SOURCES = Statement(_source.where(_is_there).order_by(_m.c.seq))
"""The messages that a summary is of, and when each was said, or else stored."""


class Sources(NamedTuple):
    """What messages a summary is of.

    A SHA-256 over their digests, and their first and last moment (ms), if any.
    """

    digest: bytes
    times: tuple[int, int] | None


def sources(
    context: ViewContext,
    first: int,
    last: int,
    pinned: Collection[int],
) -> Sources:
    """Return what messages a summary of a range is of; the pinned ones stay beside it.

    Of what was hidden by name nothing is told.
    """
    runs = context.told(first, last)
    stored = chain.from_iterable(SOURCES.scan(context.connection, **run) for run in runs)
    hidden = [(digest, at) for seq, digest, at in stored if seq not in pinned]
    digests = b"".join([digest for digest, _ in hidden])
    times = _span([at for _, at in hidden])
    return Sources(sha256(digests).digest(), times)


def _span(moments: list[int]) -> tuple[int, int] | None:
    """Return the first and last of moments, whatever order they are in."""
    if not moments:
        return None
    return min(moments), max(moments)


def first_moment(context: ViewContext, first: int, last: int) -> int | None:
    """Return when (ms) the first message of a range was said that can go; None for none."""
    for run in context.raw.ranges(first, last):
        moment: int | None = FIRST_TIME.value(context.connection, **run)
        if moment is not None:
            return moment
    return None
