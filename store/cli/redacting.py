"""The command that removes the words of a message: redact."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..errors import StoreError
from ..records import Redaction
from . import render
from .options import Json, SessionId, existing, find

Position = Annotated[int, typer.Argument(metavar="N", help="The message's position.")]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")]
Who = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who does it; recorded, too.", show_default=False),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def redact(
    ctx: typer.Context,
    session: SessionId,
    position: Position,
    reason: Why,
    by: Who = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Write over what a message says, wherever shown; asks first.

    Why is recorded.
    """
    with existing(ctx) as store:
        found = find(store, session)
        if not yes:
            if not sys.stdin.isatty():
                raise StoreError("nobody can be asked whether to redact for good; --yes says so")
            if not typer.confirm(f"Redact message {position} of {found.id}? This cannot be undone"):
                raise StoreError("nothing was redacted")
        done = store.redact(found.id, position, reason, by=by)
    said = f"{found.id}: message {position} says {_told(done)}"
    render.answer(done._asdict(), said, *_left(done), json=json)


def _told(done: Redaction) -> str:
    asked = "" if done.by is None else f" by {done.by}"
    return f"nothing any more, redacted{asked}: {done.reason}"


def _left(done: Redaction) -> list[str]:
    """Return the places that may still hold its words."""
    left = [f"compaction {each}: its summary may tell of it" for each in done.compactions]
    left += [f"{each}: this copy may hold it" for each in done.copies]
    if not done.purged:
        left.append("freed bytes of the file may hold it until `convostore purge`")
    return left
