"""The command that brings sessions out: export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
    Provider,
    ViewFormat,
    existing,
    find,
    moment_of,
    place,
    policy_of,
)
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


Every = Annotated[
    bool,
    typer.Option("--all", help="Write the whole store, so that `import` makes it again."),
]


ALONE = ("session", "view", "at")
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
    format: ViewFormat = Provider.openai,  # noqa: A002 - the option's name
    json: Json = False,
) -> None:
    """Write a session's raw messages, one JSON object a line.

    `import` reads them back equal. With --all it is all that there is of every session. --format is
    that of a view.
    """
    if every:
        _export_all(ctx, output, force=force, json=json)
        return
    if session is None:
        raise InvalidValue("name a session, or --all of them")
    rules, moment = policy_of(policy, fields), moment_of(now)
    with existing(ctx) as store:
        found = find(store, session).id
        messages, before = _raw(store, found, at), _before(store.session(found))
        if view:
            built = store.view(found, rules, at=at, now=moment, format=format.value)
            messages, before = iter(_sent(built)), []
        if output is None:
            render.write(lines(chain(before, messages)))
            return
        _refuse_own_file(ctx, output)
        rows = lines(chain(before, messages), ascii_only=False)
        count = write_private(output, rows, replace=force) - len(before)
    _say_written(output, json=json, messages=count)


def _say_written(output: Path, *, json: bool, **counts: int) -> None:
    """Say how much of what was written where."""
    told = [counted(count, things[:-1]) for things, count in counts.items()]
    text = f"{' with '.join(told)} written to {output}"
    render.answer({"file": str(output), **counts}, text, json=json)


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
    _say_written(output, json=json, sessions=counts["sessions"], messages=counts["messages"])


def _everything(store: Store, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a store, each an object of one key; count those of each table."""
    for table, fields in whole.dump(store.database):
        counts[table] += 1
        yield {table: fields}


def _sent(view: View) -> list[Any]:
    """Return what is sent, in front the system text that goes beside the messages."""
    return view.messages if view.system is None else [{"system": view.system}, *view.messages]


def _before(session: Session) -> list[Message]:
    """Return the row that says whose a session is and where its project; none where none does."""
    told = {transcripts.PROJECT_ROOT: session.project_root, transcripts.OWNER: session.owner}
    row = {key: text for key, text in told.items() if text is not None}
    return [row] if row else []


def _raw(store: Store, session_id: str, at: int | None) -> Iterator[Message]:
    return (stored.message for page in store.pages(session_id, at=at) for stored in page)
