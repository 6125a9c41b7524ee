"""The command that hides a range of messages by name."""

from __future__ import annotations

from typing import Annotated

import typer

from ..records import Compaction
from . import render
from .options import (
    Json,
    MomentText,
    SessionId,
    find_session,
    open_existing_store,
    parse_moment_option,
    render_undo_hint,
)

FirstHidden = Annotated[int, typer.Argument(metavar="FIRST", help="The first position to hide.")]
LastHidden = Annotated[int, typer.Argument(metavar="LAST", help="The last position to hide.")]
HidingText = Annotated[
    str | None,
    typer.Option(
        "--summary", metavar="TEXT", help="What stands in its place.", show_default="none"
    ),
]


def hide(
    ctx: typer.Context,
    session: SessionId,
    first: FirstHidden,
    last: LastHidden,
    summary: HidingText = None,
    now: MomentText = None,
    json: Json = False,
) -> None:
    """Hide a range behind a text of yours, or behind nothing.

    It deletes nothing; `undo --compaction` takes it back.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session)
        done = store.hide(found.id, first, last, summary, now=parse_moment_option(now))
    said = f"{found.id}: {_describe_hiding(done)}"
    render.print_answer(done._asdict(), said, f"  {render_undo_hint(found.id, done.id)}", json=json)


def _describe_hiding(done: Compaction) -> str:
    first, last = done.hidden or (0, 0)
    change = f"{done.tokens_before:,} → {done.tokens_after:,} tokens"
    return f"compaction {done.id} hides positions {first} to {last} ({change})"
