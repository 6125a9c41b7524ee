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
from ..policy import PolicyToolKind
from .context import ViewContext

ComputedT = TypeVar("ComputedT")


class NarrowResult(NamedTuple):
    """A tool result as narrow rows know it; ``length`` in code points, ``size`` in bytes."""

    tree_id: int
    branch: int
    seq: int
    tool_name: str | None
    kind: PolicyToolKind | None
    length: int
    size: int
    failed: bool


class ComputedValues(NamedTuple):
    """Values computed from results after a number of changes, and their size in bytes."""

    changes: ChangeCounts
    made: dict[NarrowResult, Any]
    size: int


def compute_once(
    context: ViewContext,
    name: tuple[Hashable, ...],
    results: Iterable[NarrowResult],
    make: Callable[[list[NarrowResult]], dict[NarrowResult, ComputedT]],
) -> dict[NarrowResult, ComputedT]:
    """Return the values with a name, for these results at least; ``make`` computes missing ones."""
    known = context.made.get(name) or _get_cached_values(context, name)
    new = [each for each in results if each not in known.made]
    if new:
        fresh = make(new)
        known = ComputedValues(
            context.changes, known.made | fresh, known.size + measure_bytes(fresh)
        )
        get_cache(context.connection).put(
            _build_values_key(context, name), known, known.size, get_read_mark(context.connection)
        )
    context.made[name] = known
    return known.made


def _get_cached_values(context: ViewContext, name: tuple[Hashable, ...]) -> ComputedValues:
    """Return the cached values of the look's tree; none if results have changed since."""
    found: ComputedValues | None = get_cache(context.connection).get(
        _build_values_key(context, name)
    )
    if found is None or found.changes != context.changes:
        return ComputedValues(context.changes, {}, 0)
    return found


def _build_values_key(context: ViewContext, name: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    return (context.pointer.tree_id, *name)
