"""Values computed from the contents of tool results, cached so that no content is read twice.

Only a redaction or an erasure changes a result (`ChangeCounts`), so the values stay valid until the
next one. An open store caches them, all results of a tree together. A look has them too, so that
they are computed once even if the store caches nothing. A writing transaction uses the cache, since
others should not wait while it reads contents, but adds nothing to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

from ..database import get_cache, get_read_mark, measure_bytes
from ..history import ChangeCounts
from ..policy import Kind
from .context import ViewContext

T = TypeVar("T")


class Result(NamedTuple):
    """A tool result as narrow rows know it; ``length`` in code points, ``size`` in bytes."""

    tree_id: int
    branch: int
    seq: int
    tool_name: str | None
    kind: Kind | None
    length: int
    size: int
    failed: bool


class Known(NamedTuple):
    """Values computed from results after a number of changes, and their size in bytes."""

    changes: ChangeCounts
    made: dict[Result, Any]
    size: int


def made_once(
    context: ViewContext,
    name: tuple[Hashable, ...],
    results: Iterable[Result],
    make: Callable[[list[Result]], dict[Result, T]],
) -> dict[Result, T]:
    """Return the values with a name, for these results at least; ``make`` computes missing ones."""
    known = context.made.get(name) or _kept(context, name)
    new = [each for each in results if each not in known.made]
    if new:
        fresh = make(new)
        known = Known(context.changes, known.made | fresh, known.size + measure_bytes(fresh))
        get_cache(context.connection).put(
            _key(context, name), known, known.size, get_read_mark(context.connection)
        )
    context.made[name] = known
    return known.made


def _kept(context: ViewContext, name: tuple[Hashable, ...]) -> Known:
    """Return the cached values of the look's tree; none if results have changed since."""
    found: Known | None = get_cache(context.connection).get(_key(context, name))
    if found is None or found.changes != context.changes:
        return Known(context.changes, {}, 0)
    return found


def _key(context: ViewContext, name: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    return (context.pointer.tree_id, *name)
