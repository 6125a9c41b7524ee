"""Commands that move heads, and the one that erases.

They are branches, moves, fork, rewind, switch, undo, project, delete.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..errors import InvalidValue, SessionNotFound, StoreError
from ..face import Store
from ..messages import content_text
from ..records import Branch, Compaction, Erasure, HeadMove, Session, Sibling
from ..text import format_count
from . import render
from .options import (
    At,
    Json,
    SessionId,
    beginning_with,
    complete_session,
    existing,
    find,
    undoing,
)
from .shown import Column, Row, safe

MOVE_COLUMNS = (
    Column("#", number=True),
    Column("move"),
    Column("from", number=True),
    Column("to", number=True),
    Column("when"),
)
BRANCH_COLUMNS = (
    Column(""),
    Column("branch", number=True),
    Column("from", number=True),
    Column("at", number=True),
    Column("head", number=True),
    Column("left"),
)
SIBLING_COLUMNS = (
    Column(""),
    Column("branch", number=True),
    Column("role"),
    Column("says"),
)

NewId = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="The new session's id.", show_default="a new UUID"),
]
NewTitle = Annotated[
    str | None,
    typer.Option(
        "--title", metavar="TEXT", help="The new session's title.", show_default="the same"
    ),
]
NewHead = Annotated[
    int, typer.Option("--to", metavar="N", help="The new head; 0: before the first message.")
]
FromBranch = Annotated[
    int | None,
    typer.Option(
        "--branch",
        metavar="N",
        help="A branch that was left; `branches` lists them.",
        show_default="the present one",
    ),
]
ToBranch = Annotated[
    int, typer.Argument(metavar="BRANCH", help="Its number; `branches` lists them.")
]
BackTo = Annotated[
    int | None,
    typer.Option("--to", metavar="N", help="The new head.", show_default="the end of the branch"),
]
AtPosition = Annotated[
    int | None,
    typer.Option(
        "--at",
        metavar="N",
        help="List the messages that stand at position N on them, after the same beginning.",
        show_default=False,
    ),
]
CompactionId = Annotated[
    int | None,
    typer.Option(
        "--compaction",
        metavar="ID",
        help="Take back this compaction instead.",
        show_default=False,
    ),
]
Folder = Annotated[
    str,
    typer.Argument(metavar="FOLDER", help="The project's folder; an empty text: none."),
]
WholeId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION", help="A session's whole id.", autocompletion=complete_session
    ),
]
WithPurge = Annotated[
    bool, typer.Option("--purge", help="Write the file anew at once; writers wait meanwhile.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def fork(
    ctx: typer.Context,
    session: SessionId,
    at: At = None,
    branch: FromBranch = None,
    id: NewId = None,  # noqa: A002 - the option's name
    title: NewTitle = None,
    json: Json = False,
) -> None:
    """Continue a session from a position, in a new session.

    It copies no message.
    """
    with existing(ctx) as store:
        source = find(store, session)
        made = store.fork(source.id, at=at, branch=branch, session_id=id, title=title)
    said = f"{made.id} continues {made.forked_from} from position {made.forked_at}"
    render.answer(made._asdict(), said, json=json)


def rewind(
    ctx: typer.Context,
    session: SessionId,
    to: NewHead,
    json: Json = False,
) -> None:
    """Move a session's head back to a position.

    It deletes nothing; `undo` takes it back.
    """
    with existing(ctx) as store:
        before = find(store, session)
        after = store.rewind(before.id, to=to)
    said = f"{after.id}: head {before.head} → {after.head}; {undoing(after.id)}"
    render.answer(after._asdict(), said, json=json)


def switch(
    ctx: typer.Context,
    session: SessionId,
    branch: ToBranch,
    to: BackTo = None,
    json: Json = False,
) -> None:
    """Move a session's head to a branch that it has left.

    `undo` takes it back.
    """
    with existing(ctx) as store:
        before = find(store, session)
        after = store.switch(before.id, branch, to)
    ways = f"branch {before.branch} → {after.branch}, head {before.head} → {after.head}"
    render.answer(after._asdict(), f"{after.id}: {ways}", json=json)


def undo(
    ctx: typer.Context,
    session: SessionId,
    compaction: CompactionId = None,
    json: Json = False,
) -> None:
    """Take back a session's last rewind or switch, or a compaction.

    Once more, and it takes back the one before that.
    """
    with existing(ctx) as store:
        before = find(store, session)
        done: Session | Compaction
        if compaction is None:
            done = store.undo_rewind(before.id)
            said = f"{done.id}: head {before.head} → {done.head}"
        else:
            done = store.undo_compaction(before.id, compaction)
            said = f"{before.id}: compaction {done.id} undone, {_brought_back(done)}"
    render.answer(done._asdict(), said, json=json)


def project(
    ctx: typer.Context,
    session: SessionId,
    folder: Folder,
    json: Json = False,
) -> None:
    """Set the folder of a session's project.

    Which files its results are about is told anew, for all sessions that share its tree.
    """
    with existing(ctx) as store:
        after = store.set_project_root(find(store, session).id, folder or None)
    said = f"{after.id}: the project is in {after.project_root or 'no folder'}"
    render.answer(after._asdict(), said, json=json)


def branches(
    ctx: typer.Context,
    session: SessionId,
    at: AtPosition = None,
    json: Json = False,
) -> None:
    """List the branches of a session, or what they say at a position.

    `switch` goes to one of them.
    """
    with existing(ctx) as store:
        found = find(store, session).id
        listed: list[Branch] | list[Sibling]
        listed = store.branches(found) if at is None else store.siblings(found, at)
    columns = BRANCH_COLUMNS if at is None else SIBLING_COLUMNS
    if json:
        render.print_json_list(each._asdict() for each in listed)
    elif not listed:
        render.say(f"no branch has a message at position {at}")
    else:
        render.table(columns, map(_branch_row, listed))


def _branch_row(branch: Branch | Sibling) -> Row:
    """Return a branch as a row, or what one says; the present one is marked."""
    mark = "*" if branch.current else ""
    if isinstance(branch, Sibling):
        role, says = branch.message.get("role"), content_text(branch.message.get("content"))
        return mark, branch.branch, role, render.one_line(says)
    left = render.moment(branch.left_at)
    return mark, branch.branch, branch.parent, branch.forked_at, branch.head, left


def moves(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """List the moves of a session's head, oldest first.

    They are forks, rewinds, switches and undoings.
    """
    with existing(ctx) as store:
        found = store.head_moves(find(store, session).id)
    if json:
        render.print_json_list(each._asdict() for each in found)
    elif not found:
        render.say("no moves")
    else:
        render.table(MOVE_COLUMNS, map(_move_row, found))


def _move_row(move: HeadMove) -> Row:
    when = render.moment(move.moved_at)
    return move.move, move.kind, move.from_position, move.to_position, when


def delete(
    ctx: typer.Context,
    session: WholeId,
    purge: WithPurge = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Erase a session for good, with all made from it; asks first."""
    with existing(ctx) as store:
        found = _not_guessed(store, session)
        if not yes:
            if not sys.stdin.isatty():
                raise StoreError("nobody can be asked whether to erase for good; --yes says so")
            if not typer.confirm(f"Erase {_whole(found)}? This cannot be undone", err=True):
                raise StoreError("nothing was erased")
        erased = store.delete_session(found.id, purge=purge)
    render.answer(erased._asdict(), _told(erased), json=json)
    if purge and not erased.purged:
        render.complain("the file could not be purged now; `convostore purge` says why")


def _not_guessed(store: Store, given: str) -> Session:
    """Return the session of exactly this id; a session to erase is never guessed."""
    try:
        return store.session(given)
    except SessionNotFound:
        like = next(beginning_with(store, given), None)
        if like is None:
            raise
        raise InvalidValue(f"only its whole id erases a session: {like.id}") from None


def _told(erased: Erasure) -> str:
    said = f"{erased.session_id}: {format_count(erased.messages, 'message')} erased"
    if erased.kept:
        said += f"; {erased.kept} more stay, other sessions' lines run through them"
    return said


def _whole(session: Session) -> str:
    title = f" ({render.one_line(session.title)})" if session.title else ""
    messages = format_count(session.head, "message")
    return f"session {safe(session.id)}{title} with {messages}"


def _brought_back(undone: Compaction) -> str:
    if undone.hidden is None:
        return f"what {format_count(len(undone.cleared), 'tool result')} said is back"
    first, last = undone.hidden
    return f"positions {first} to {last} are back"
