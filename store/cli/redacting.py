"""The command that removes the words of a message: redact."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..errors import StoreError
from ..records import Redaction
from . import render
from .options import Json, SessionId, find_session, open_existing_store

RedactedPosition = Annotated[int, typer.Argument(metavar="N", help="The message's position.")]
RedactionReason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")
]
RedactionAuthor = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who does it; recorded, too.", show_default=False),
]
RedactionConsent = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def redact(
    ctx: typer.Context,
    session: SessionId,
    position: RedactedPosition,
    reason: RedactionReason,
    by: RedactionAuthor = None,
    yes: RedactionConsent = False,
    json: Json = False,
) -> None:
    """Write over what a message says, wherever shown; asks first.

    Why is recorded.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session)
        if not yes:
            if not sys.stdin.isatty():
                raise StoreError("nobody can be asked whether to redact for good; --yes says so")
            if not typer.confirm(f"Redact message {position} of {found.id}? This cannot be undone"):
                raise StoreError("nothing was redacted")
        done = store.redact(found.id, position, reason, by=by)
    said = f"{found.id}: message {position} says {_describe_redaction(done)}"
    render.print_answer(done._asdict(), said, *_list_remaining_places(done), json=json)


def _describe_redaction(done: Redaction) -> str:
    asked = "" if done.by is None else f" by {done.by}"
    return f"nothing any more, redacted{asked}: {done.reason}"


def _list_remaining_places(done: Redaction) -> list[str]:
    """Return the places that may still hold its words."""
    left = [f"compaction {each}: its summary may tell of it" for each in done.compactions]
    left += [f"{each}: this copy may hold it" for each in done.copies]
    if not done.purged:
        left.append("freed bytes of the file may hold it until `convostore purge`")
    return left
