"""Results in their short form: what finished turns show of them, and how much that saves.

The short form of a result never changes, since the result never does, so what it saves is found out once a process and
kept in memory: a check then reads narrow rows only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from . import rules
from .messages import content_text, decode
from .policy import Kind, Policy
from .schema import messages
from .statements import Statement
from .tokens import estimate, estimate_size
from .tool_output import compress

REMEMBERED = 100_000
"""Results of which a process remembers how long their short form is."""

_m = messages
CONTENTS = Statement(
    select(_m.c.seq, _m.c.content_form, _m.c.content)
    .where(
        _m.c.tree_id == bindparam("tree_id"),
        _m.c.branch == bindparam("branch"),
        _m.c.seq.between(bindparam("first"), bindparam("last")),
        _m.c.seq.in_(rules.positions("wanted")),
    )
    .order_by(_m.c.seq)
)


class Result(NamedTuple):
    """A tool result as narrow rows know it; ``length`` in code points, ``size`` in bytes."""

    tree_id: int
    branch: int
    seq: int
    tool_name: str | None
    kind: Kind | None
    length: int
    size: int


class _Short(NamedTuple):
    length: int
    tokens: int


_UNKNOWN = _Short(-1, 0)
_remembered: dict[Result, _Short | None] = {}


def short_form(content: object, tool_name: str | None, kind: Kind | None, *, min_saving: int = 0) -> str | None:
    """Return what stands for a content that is text; None where that is not shorter, or would lose more than text."""
    text = content if isinstance(content, str) else _joined(content)
    if not text:
        return None
    short = compress(tool_name or "", text, kind=kind)
    return short if len(text) - len(short) >= max(1, min_saving) else None


def short_savings(connection: Connection, policy: Policy, results: Iterable[Result]) -> dict[int, int]:
    """Return about how many tokens the short form of each result saves, by position; none where it is not shorter."""
    least = max(1, policy.min_saving)
    return {
        result.seq: estimate_size(result.length, result.size) - short.tokens
        for result, short in _measured(connection, results).items()
        if short and result.length - short.length >= least
    }


def _measured(connection: Connection, results: Iterable[Result]) -> dict[Result, _Short | None]:
    """Return how long the short form of each result is, reading what is not known yet."""
    shorts = {result: _remembered.get(result, _UNKNOWN) for result in results}
    unknown = [result for result, short in shorts.items() if short is _UNKNOWN]
    if unknown:
        fresh = dict(_read(connection, unknown))
        if len(_remembered) + len(fresh) > REMEMBERED:
            _remembered.clear()  # in one step: other threads go on reading and adding
        _remembered.update(fresh)
        shorts |= dict.fromkeys(unknown) | fresh
    return shorts


def _read(connection: Connection, results: list[Result]) -> Iterator[tuple[Result, _Short | None]]:
    """Yield results with the length of their short form, a branch at a time."""
    place = attrgetter("tree_id", "branch")
    for (tree_id, branch), there in groupby(sorted(results, key=place), key=place):
        wanted = {result.seq: result for result in there}
        values = {"first": min(wanted), "last": max(wanted), "wanted": json.dumps([*wanted])}
        for seq, form, content in CONTENTS.rows(connection, tree_id=tree_id, branch=branch, **values):
            yield wanted[seq], _measure(form, content, wanted[seq])


def _measure(form: str | None, content: str | None, result: Result) -> _Short | None:
    value = decode(content) if form == "json" and content is not None else content
    short = short_form(value, result.tool_name, result.kind)
    return None if short is None else _Short(len(short), estimate(short))


def _joined(content: object) -> str:
    """Return the text of a content of nothing but text parts, "" for any other."""
    parts = content if isinstance(content, list) else [None]
    return content_text(parts) if all(isinstance(part, dict) and part.get("type") == "text" for part in parts) else ""
