"""Commands that move heads, and the one that erases: fork, rewind, undo, moves, delete."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..errors import StoreError
from ..records import Compaction, Session
from . import render
from .options import At, Json, SessionId, existing, find
from .render import Column

MOVE_COLUMNS = (
    Column("#", number=True),
    Column("move"),
    Column("from", number=True),
    Column("to", number=True),
    Column("when"),
)


def fork(
    ctx: typer.Context,
    session: SessionId,
    at: At = None,
    id: Annotated[  # noqa: A002 - the option's name
        str | None, typer.Option("--id", metavar="ID", help="The new session's id.", show_default="a new UUID")
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="The new session's title.", show_default="the same")
    ] = None,
    json: Json = False,
) -> None:
    """Create a session that continues another one from a position; copies no message."""
    with existing(ctx) as store:
        made = store.fork(find(store, session).id, at=at, session_id=id, title=title)
    _print(made, f"{made.id} continues {made.forked_from} from position {made.forked_at}", json=json)


def rewind(
    ctx: typer.Context,
    session: SessionId,
    to: Annotated[int, typer.Option("--to", metavar="N", help="The new head; 0: before the first message.")],
    json: Json = False,
) -> None:
    """Move a session's head back to a position; deletes nothing, `undo` takes it back."""
    with existing(ctx) as store:
        before = find(store, session)
        after = store.rewind(before.id, to=to)
    _print(
        after, f"{after.id}: head {before.head} → {after.head}; `convostore undo {after.id}` takes it back", json=json
    )


def undo(
    ctx: typer.Context,
    session: SessionId,
    compaction: Annotated[
        int | None,
        typer.Option("--compaction", metavar="ID", help="Take back this compaction instead.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Take back a session's last rewind (again: the one before it), or a compaction."""
    with existing(ctx) as store:
        before = find(store, session)
        if compaction is not None:
            _print_undone(before.id, store.undo_compaction(before.id, compaction), json=json)
            return
        after = store.undo_rewind(before.id)
    _print(after, f"{after.id}: head {before.head} → {after.head}", json=json)


def moves(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """List every fork, rewind and undo of a session, oldest first."""
    with existing(ctx) as store:
        found = store.head_moves(find(store, session).id)
    if json:
        render.print_json_list(each._asdict() for each in found)
    elif not found:
        render.say("no moves")
    else:
        rows = [(each.move, each.kind, each.from_position, each.to_position) for each in found]
        render.table(
            MOVE_COLUMNS, [(*row, render.moment(each.moved_at)) for row, each in zip(rows, found, strict=True)]
        )


def delete(
    ctx: typer.Context,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="A session's whole id.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Erase a session for good: its messages and everything made from them; asks first."""
    with existing(ctx) as store:
        found = store.session(session)
        if not yes:
            _confirm(found)
        erased = store.delete_session(found.id)
    if json:
        render.print_json(erased._asdict())
        return
    kept = f"; {erased.kept} more stay, other sessions' lines run through them" if erased.kept else ""
    render.say(f"{erased.session_id}: {render.counted(erased.messages, 'message')} erased{kept}")


def _confirm(session: Session) -> None:
    """Ask the user, on the terminal. Raises StoreError where there is nobody to ask or the answer is no."""
    if not sys.stdin.isatty():
        raise StoreError("nobody can be asked whether to erase for good; --yes says so")
    title = f" ({render.one_line(session.title)})" if session.title else ""
    what = f"session {render.safe(session.id)}{title} with {render.counted(session.head, 'message')}"
    if not typer.confirm(f"Erase {what}? This cannot be undone", err=True):
        raise StoreError("nothing was erased")


def _print_undone(session_id: str, undone: Compaction, *, json: bool) -> None:
    if json:
        render.print_json(undone._asdict())
        return
    cleared = f"what {render.counted(len(undone.cleared), 'tool result')} said is back"
    hidden = f"positions {undone.hidden[0]} to {undone.hidden[1]} are back" if undone.hidden else cleared
    render.say(f"{session_id}: compaction {undone.id} undone, {hidden}")


def _print(session: Session, text: str, *, json: bool) -> None:
    if json:
        render.print_json(session._asdict())
    else:
        render.say(text)
