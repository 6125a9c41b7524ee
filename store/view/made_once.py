"""What is made of the contents of tool results, so that none of them is read for it again.

A result changes by a redaction or an erasure alone (`ChangeCounts`). So what was made of one stays
true until there is another one. An open store keeps it, the results of a tree together; and a look
has it by itself, so that it is made once where a store keeps nothing. A transaction that writes
finds what is kept, since nobody should wait while it reads contents, and adds nothing.
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
    """What was made of results as they were behind some changes, and the bytes that it takes."""

    changes: ChangeCounts
    made: dict[Result, Any]
    size: int


def made_once(
    context: ViewContext,
    name: tuple[Hashable, ...],
    results: Iterable[Result],
    make: Callable[[list[Result]], dict[Result, T]],
) -> dict[Result, T]:
    """Return what is made of results, of these at least, under the name of what it is."""
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
    """Return what is kept of the results of a look's tree; nothing where that has changed since."""
    found: Known | None = get_cache(context.connection).get(_key(context, name))
    if found is None or found.changes != context.changes:
        return Known(context.changes, {}, 0)
    return found


def _key(context: ViewContext, name: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    return (context.pointer.tree_id, *name)
