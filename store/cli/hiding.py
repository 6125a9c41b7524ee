"""The command that hides a range of messages by name."""

from __future__ import annotations

from typing import Annotated

import typer

from ..records import Compaction
from . import render
from .options import Json, Now, SessionId, existing, find, moment_of, undoing

First = Annotated[int, typer.Argument(metavar="FIRST", help="The first position to hide.")]
Last = Annotated[int, typer.Argument(metavar="LAST", help="The last position to hide.")]
Text = Annotated[
    str | None,
    typer.Option(
        "--summary", metavar="TEXT", help="What stands in its place.", show_default="none"
    ),
]


def hide(
    ctx: typer.Context,
    session: SessionId,
    first: First,
    last: Last,
    summary: Text = None,
    now: Now = None,
    json: Json = False,
) -> None:
    """Hide a range behind a text of yours, or behind nothing.

    It deletes nothing; `undo --compaction` takes it back.
    """
    with existing(ctx) as store:
        found = find(store, session)
        done = store.hide(found.id, first, last, summary, now=moment_of(now))
    said = f"{found.id}: {_told(done)}"
    render.answer(done._asdict(), said, f"  {undoing(found.id, done.id)}", json=json)


def _told(done: Compaction) -> str:
    first, last = done.hidden or (0, 0)
    change = f"{done.tokens_before:,} → {done.tokens_after:,} tokens"
    return f"compaction {done.id} hides positions {first} to {last} ({change})"
