"""Results in their short form: what finished turns show of them, and how much that saves.

The short form of a result never changes, since the result never does, so what it saves is found out once a process and
kept in memory: a check then reads narrow rows only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from . import lines, rules
from .lines import Pointer
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

    seq: int
    tool_name: str | None
    kind: Kind | None
    length: int
    size: int


class _Short(NamedTuple):
    length: int
    tokens: int


_remembered: dict[tuple[int, int, Result], _Short | None] = {}


def short_form(content: object, tool_name: str | None, kind: Kind | None, *, min_saving: int = 0) -> str | None:
    """Return what stands for a content that is text; None where that is not shorter, or would lose more than text."""
    text = content if isinstance(content, str) else _joined(content)
    if not text:
        return None
    short = compress(tool_name or "", text, kind=kind)
    return short if len(text) - len(short) >= max(1, min_saving) else None


def short_savings(
    connection: Connection, pointer: Pointer, policy: Policy, results: Iterable[Result]
) -> dict[int, int]:
    """Return about how many tokens the short form of each result saves, by position; none where it is not shorter."""
    wanted = {result.seq: result for result in results}
    saved: dict[int, int] = {}
    for run in lines.segments(connection, pointer, min(wanted, default=1), max(wanted, default=0)):
        there = {seq: result for seq, result in wanted.items() if run.first <= seq <= run.last}
        for seq, short in _measured(connection, pointer.tree_id, run, there).items():
            length, size = there[seq].length, there[seq].size
            if short and length - short.length >= max(1, policy.min_saving):
                saved[seq] = estimate_size(length, size) - short.tokens
    return saved


def _measured(
    connection: Connection, tree_id: int, run: lines.Segment, there: dict[int, Result]
) -> dict[int, _Short | None]:
    """Return how long the short form of each result of a run is, reading what is not known yet."""
    keys = {seq: (tree_id, run.branch, result) for seq, result in there.items()}
    unknown = [seq for seq, key in keys.items() if key not in _remembered]
    known = {seq: _remembered[key] for seq, key in keys.items() if key in _remembered}
    if unknown:
        rows = CONTENTS.rows(connection, tree_id=tree_id, **run._asdict(), wanted=json.dumps(unknown))
        fresh = {seq: _measure(form, content, there[seq]) for seq, form, content in rows}
        while _remembered and len(_remembered) + len(fresh) > REMEMBERED:
            _remembered.pop(next(iter(_remembered)), None)
        _remembered.update((keys[seq], short) for seq, short in fresh.items())
        known |= fresh
    return known


def _measure(form: str | None, content: str | None, result: Result) -> _Short | None:
    value = decode(content) if form == "json" and content is not None else content
    short = short_form(value, result.tool_name, result.kind)
    return None if short is None else _Short(len(short), estimate(short))


def _joined(content: object) -> str:
    """Return the text of a content of nothing but text parts, "" for any other."""
    parts = content if isinstance(content, list) else [None]
    return content_text(parts) if all(isinstance(part, dict) and part.get("type") == "text" for part in parts) else ""
