"""The command that brings sessions out: export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import transcripts
from ..errors import InvalidValue, StoreError
from ..face import Store
from ..importing import is_file_of
from ..inspection import whole
from ..messages import Message
from ..policy import Policy
from ..records import Session, View
from ..text import counted
from . import render
from .options import (
    At,
    Fields,
    Json,
    MaybeSession,
    Now,
    PolicyName,
    existing,
    find,
    moment_of,
    place,
    policy_of,
)
from .shapes import PROGRAMS, Compacted, Look, Shape, Written, compacted, raw_line, shaped
from .written import lines, write_private

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to, readable by you alone.",
        show_default="stdout",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]
AsView = Annotated[
    bool, typer.Option("--view", help="Export what would be sent to the model instead.")
]
As = Annotated[
    Shape | None,
    typer.Option(
        "--as",
        help="What it is to be: of a provider, a program, or a page.",
        show_default="the messages as they are; those of `openai` with --view",
    ),
]


Every = Annotated[
    bool,
    typer.Option("--all", help="Write the whole store, so that `import` makes it again."),
]


ALONE = ("session", "view", "at", "shape")
"""What is said of one session only."""


def export(
    ctx: typer.Context,
    session: MaybeSession = None,
    every: Every = False,
    output: Output = None,
    force: Force = False,
    view: AsView = False,
    at: At = None,
    now: Now = None,
    policy: PolicyName = "default",
    fields: Fields = None,
    shape: As = None,
    json: Json = False,
) -> None:
    """Write a session's raw messages, one JSON object a line.

    `import` reads them back equal. With --all it is all that there is of every session. With --as
    it is what another program goes on with, or a page for people.
    """
    if every:
        _export_all(ctx, output, force=force, json=json)
        return
    if session is None:
        raise InvalidValue("name a session, or --all of them")
    rules, moment = policy_of(policy, fields), moment_of(now)
    ascii_only = None if output is None else False
    with existing(ctx) as store:
        found = store.session(find(store, session).id)
        seen = partial(_view, store, found.id, rules, at=at, now=moment)
        look = seen if view else _whole(store, found, at, shape)
        if shape or view:
            written = shaped(shape or Shape.openai, found, look, ascii_only)
        else:
            written = _as_it_is(store, found, at, ascii_only)
        if output is None:
            render.write(written.lines)
            return
        _refuse_own_file(ctx, output)
        write_private(output, written.lines, replace=force)
    _say_written(output, written.advice, json=json, messages=written.size)


def _say_written(output: Path, advice: str | None, *, json: bool, **counts: int) -> None:
    """Say how much of what was written where, and what to do with it."""
    told = [counted(count, things[:-1]) for things, count in counts.items()]
    texts = [f"{' with '.join(told)} written to {output}", *([advice] if advice else [])]
    fields = {"file": str(output), **counts}
    render.answer(fields | ({"next": advice} if advice else {}), *texts, json=json)


def _refuse_own_file(ctx: typer.Context, output: Path) -> None:
    if is_file_of(place(ctx).file, output):
        raise StoreError(f"{str(output)!r} is the store itself; export to another file")


def _export_all(ctx: typer.Context, output: Path | None, *, force: bool, json: bool) -> None:
    if any(ctx.params[name] for name in ALONE):
        raise InvalidValue(f"--all goes without {' or '.join(ALONE)}")
    counts: Counter[str] = Counter()
    with existing(ctx) as store:
        rows = _everything(store, counts)
        if output is None:
            render.write(lines(rows))
            return
        _refuse_own_file(ctx, output)
        write_private(output, lines(rows, ascii_only=False), replace=force)
    _say_written(output, None, json=json, sessions=counts["sessions"], messages=counts["messages"])


def _everything(store: Store, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a store, each an object of one key; count those of each table."""
    for table, fields in whole.dump(store.database):
        counts[table] += 1
        yield {table: fields}


def _view(
    store: Store,
    session_id: str,
    rules: Policy,
    format: str,  # noqa: A002 - the public name
    **options: Any,
) -> View:
    return store.view(session_id, rules, format=format, **options)


def _whole(store: Store, session: Session, at: int | None, shape: Shape | None) -> Look | Compacted:
    """Return a whole line: for a program as it would have compacted it, too."""
    parts = compacted(store, session, at) if shape in PROGRAMS else None
    return parts or raw_line(store, session, at)


def _as_it_is(store: Store, session: Session, at: int | None, ascii_only: bool | None) -> Written:
    """Return a line as it is stored."""
    count = session.head if at is None else at
    rows = chain(_before(session), _raw(store, session.id, at))
    return Written(lines(rows, ascii_only=ascii_only), count)


def _before(session: Session) -> list[Message]:
    """Return the row that says whose a session is and where its project; none where none does."""
    told = {transcripts.PROJECT_ROOT: session.project_root, transcripts.OWNER: session.owner}
    row = {key: text for key, text in told.items() if text is not None}
    return [row] if row else []


def _raw(store: Store, session_id: str, at: int | None) -> Iterator[Message]:
    return (stored.message for page in store.pages(session_id, at=at) for stored in page)
