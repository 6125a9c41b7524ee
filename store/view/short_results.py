"""Results in their short form: what finished turns show of them, and how much that saves.

The short form of a result never changes, since the result never does (but for a redaction, which
leaves one that has none, and an erasure, behind which its numbers may come again), so what it saves
is found out once and kept in memory: a check then reads narrow rows only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import Connection, select

from ..database import Statement, json_sql, messages
from ..history import Segment, lines
from ..messages import content_text, decode
from ..policy import Kind
from ..ready import Language
from ..tokens import estimate, estimate_size
from ..tools import compress
from .context import ViewContext
from .log_messages import attempt_rule
from .made_once import Result, made_once

_m = messages
CONTENTS = Statement(
    select(_m.c.seq, _m.c.content_form, _m.c.content)
    .where(lines.in_run(_m))
    .where(_m.c.seq.in_(json_sql.positions("wanted")))
    .order_by(_m.c.seq)
)


class _Short(NamedTuple):
    length: int
    tokens: int


Measured = tuple[Result, _Short | None]
"""A result with the length of its short form; None where nothing is shorter."""

_BRANCH = attrgetter("tree_id", "branch")


def short_form(
    content: object,
    tool_name: str | None,
    kind: Kind | None,
    *,
    failed: bool,
    min_saving: int = 0,
    language: Language = "en",
) -> str | None:
    """Return what stands for a content that is text, None where nothing shorter does.

    Nothing stands for more than text, which would be lost. Of the output of a command that
    ``failed`` more stays.
    """
    text = _text_of(content)
    if not text:
        return None
    apply = partial(compress, tool_name or "", text, kind=kind, failed=failed, language=language)
    short = attempt_rule("tool_output", apply, otherwise=text)
    return short if len(text) - len(short) >= max(1, min_saving) else None


def short_savings(context: ViewContext, results: Iterable[Result]) -> dict[int, int]:
    """Return about how many tokens short forms save, by the positions of those that are shorter."""
    least = max(1, context.policy.min_saving)
    return {
        result.seq: estimate_size(result.length, result.size) - short.tokens
        for result, short in _measured(context, results)
        if short and result.length - short.length >= least
    }


def _measured(context: ViewContext, results: Iterable[Result]) -> Iterator[Measured]:
    """Return how long the short form of each result is, reading what is not known yet."""
    wanted = dict.fromkeys(results)
    language = context.policy.language
    make = partial(_made, context.connection, language)
    known = made_once(context, ("short", language), wanted, make)
    return ((result, known[result]) for result in wanted)


def _made(
    connection: Connection, language: Language, results: list[Result]
) -> dict[Result, _Short | None]:
    """Return how long short forms are; None, too, where a result is not there to be read."""
    return {**dict.fromkeys(results), **dict(_read(connection, language, results))}


def _read(connection: Connection, language: Language, results: list[Result]) -> Iterator[Measured]:
    """Yield results with the length of their short form, a branch at a time."""
    by_branch = sorted(results, key=_BRANCH)
    for (tree_id, branch), there in groupby(by_branch, key=_BRANCH):
        wanted = {result.seq: result for result in there}
        run = Segment(branch, min(wanted), max(wanted))
        asked = json.dumps([*wanted])
        rows = CONTENTS.rows(connection, **run.within(tree_id), wanted=asked)
        for seq, form, content in rows:
            yield wanted[seq], _measure(form, content, wanted[seq], language)


def _measure(
    form: str | None, content: str | None, result: Result, language: Language
) -> _Short | None:
    value = decode(content) if form == "json" and content is not None else content
    short = short_form(
        value, result.tool_name, result.kind, failed=result.failed, language=language
    )
    return None if short is None else _Short(len(short), estimate(short))


def _text_of(content: object) -> str:
    """Return a content that is text, or nothing but text parts, as text; "" for any other."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(map(_is_text_part, content)):
        return content_text(content)
    return ""


def _is_text_part(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text"
