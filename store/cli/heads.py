"""Commands about heads: branches, moves, fork, rewind, switch, undo, project."""

from __future__ import annotations

from typing import Annotated

import typer

from ..records import Branch, Compaction, Session, Sibling, extract_content_text
from ..text import format_count
from . import render
from .options import (
    Json,
    LinePosition,
    SessionId,
    find_session,
    open_existing_store,
    render_undo_hint,
    resolve_folder,
)
from .terminal import Column, TableRow

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
SourceBranch = Annotated[
    int | None,
    typer.Option(
        "--branch",
        metavar="N",
        help="An earlier branch of the session; `branches` lists them.",
        show_default="the present one",
    ),
]
TargetBranch = Annotated[
    int, typer.Argument(metavar="BRANCH", help="Its number; `branches` lists them.")
]
BranchPosition = Annotated[
    int | None,
    typer.Option("--to", metavar="N", help="The new head.", show_default="the end of the branch"),
]
SiblingPosition = Annotated[
    int | None,
    typer.Option(
        "--at",
        metavar="N",
        help="List the messages at position N of branches with the same beginning.",
        show_default=False,
    ),
]
CompactionId = Annotated[
    int | None,
    typer.Option(
        "--compaction",
        metavar="ID",
        help="Undo this compaction instead.",
        show_default=False,
    ),
]
ProjectFolder = Annotated[
    str,
    typer.Argument(metavar="FOLDER", help="The project's folder; an empty text removes it."),
]


def fork(
    ctx: typer.Context,
    session: SessionId,
    at: LinePosition = None,
    branch: SourceBranch = None,
    id: NewId = None,  # noqa: A002 - the option's name
    title: NewTitle = None,
    json: Json = False,
) -> None:
    """Continue a session from a position, in a new session.

    It copies no message.
    """
    with open_existing_store(ctx) as store:
        source = find_session(store, session)
        made = store.fork(source.id, at=at, branch=branch, session_id=id, title=title)
    said = f"{made.id} continues {made.forked_from} from position {made.forked_at}"
    render.print_answer(made._asdict(), said, json=json)


def rewind(
    ctx: typer.Context,
    session: SessionId,
    to: NewHead,
    json: Json = False,
) -> None:
    """Move a session's head back to a position.

    It deletes nothing; `undo` undoes it.
    """
    with open_existing_store(ctx) as store:
        before = find_session(store, session)
        after = store.rewind(before.id, to=to)
    said = f"{after.id}: head {before.head} → {after.head}; {render_undo_hint(after.id)}"
    render.print_answer(after._asdict(), said, json=json)


def switch(
    ctx: typer.Context,
    session: SessionId,
    branch: TargetBranch,
    to: BranchPosition = None,
    json: Json = False,
) -> None:
    """Move a session's head to a branch that it has left.

    `undo` undoes it.
    """
    with open_existing_store(ctx) as store:
        before = find_session(store, session)
        after = store.switch(before.id, branch, to)
    ways = f"branch {before.branch} → {after.branch}, head {before.head} → {after.head}"
    render.print_answer(after._asdict(), f"{after.id}: {ways}", json=json)


def undo(
    ctx: typer.Context,
    session: SessionId,
    compaction: CompactionId = None,
    json: Json = False,
) -> None:
    """Undo a session's last rewind or switch, or a compaction.

    Called again, it undoes the previous one.
    """
    with open_existing_store(ctx) as store:
        before = find_session(store, session)
        done: Session | Compaction
        if compaction is None:
            done = store.undo_rewind(before.id)
            said = f"{done.id}: head {before.head} → {done.head}"
        else:
            done = store.undo_compaction(before.id, compaction)
            said = f"{before.id}: compaction {done.id} undone, {_describe_restored_positions(done)}"
    render.print_answer(done._asdict(), said, json=json)


def project(
    ctx: typer.Context,
    session: SessionId,
    folder: ProjectFolder,
    json: Json = False,
) -> None:
    """Set the folder of a session's project.

    The files of its results are derived again, for all sessions that share its tree.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session).id
        after = store.set_project_root(found, resolve_folder(folder) or None)
    said = f"{after.id}: the project is in {after.project_root or 'no folder'}"
    render.print_answer(after._asdict(), said, json=json)


def branches(
    ctx: typer.Context,
    session: SessionId,
    at: SiblingPosition = None,
    json: Json = False,
) -> None:
    """List a session's branches, or their messages at a position.

    `switch` goes to one of them.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session).id
        listed: list[Branch] | list[Sibling]
        listed = store.branches(found) if at is None else store.siblings(found, at)
    columns = BRANCH_COLUMNS if at is None else SIBLING_COLUMNS
    if json:
        render.print_json_list(each._asdict() for each in listed)
    elif not listed:
        render.print_lines(f"no branch has a message at position {at}")
    else:
        rows: list[TableRow] = []
        for each in listed:
            mark = "*" if each.current else ""
            if isinstance(each, Sibling):
                role = each.message.get("role")
                says = extract_content_text(each.message.get("content"))
                rows.append((mark, each.branch, role, render.shorten_to_line(says)))
            else:
                left = render.format_moment(each.left_at)
                rows.append((mark, each.branch, each.parent, each.forked_at, each.head, left))
        render.show_table(columns, rows)


def moves(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """List the moves of a session's head, oldest first.

    They are forks, rewinds, switches and their undoings.
    """
    with open_existing_store(ctx) as store:
        found = store.head_moves(find_session(store, session).id)
    if json:
        render.print_json_list(each._asdict() for each in found)
    elif not found:
        render.print_lines("no moves")
    else:
        rows = (
            (each.move, each.kind, each.from_position, each.to_position, moved_at)
            for each in found
            for moved_at in [render.format_moment(each.moved_at)]
        )
        render.show_table(MOVE_COLUMNS, rows)


def _describe_restored_positions(undone: Compaction) -> str:
    if undone.hidden is None:
        return f"what {format_count(len(undone.cleared), 'tool result')} said is back"
    first, last = undone.hidden
    return f"positions {first} to {last} are back"
