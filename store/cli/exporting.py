"""The command that brings sessions out: export."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import transcripts
from ..errors import InvalidValue, StoreError
from ..face import Store
from ..importing import is_file_of
from ..messages import Message
from ..records import Session, View
from ..text import counted
from . import render
from .everything import export_all
from .options import (
    At,
    Fields,
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
        help="Where to, readable by you alone; a folder with --all.",
        show_default="stdout",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]
AsView = Annotated[
    bool, typer.Option("--view", help="Export what would be sent to the model instead.")
]


Every = Annotated[
    bool,
    typer.Option(
        "--all", help="Write every session, also archived ones, to a folder: --output FOLDER."
    ),
]


ALONE = ("session", "force", "view", "at")
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
) -> None:
    """Write a session's raw messages, one JSON object a line.

    `import` reads them back equal. With --all every session gets a file. --format is that of a
    view.
    """
    if every:
        _export_all(ctx, output)
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
        if is_file_of(place(ctx).file, output):
            raise StoreError(f"{str(output)!r} is the store itself; export to another file")
        rows = lines(chain(before, messages), ascii_only=False)
        count = write_private(output, rows, replace=force) - len(before)
    render.say(f"{counted(count, 'message')} written to {output}")


def _export_all(ctx: typer.Context, folder: Path | None) -> None:
    told = [name for name in ALONE if ctx.params[name]]
    if folder is None or told:
        raise InvalidValue(f"--all goes with --output FOLDER, and not with {' or '.join(ALONE)}")
    with existing(ctx) as store:
        done = export_all(store, folder)
    written = counted(done.written, "session")
    render.say(f"{written} written to {folder}, {done.unchanged:,} there already")
    if done.others:
        others = counted(done.others, "file")
        render.say(f"{others} of sessions that are not in the store: left as they are")


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
