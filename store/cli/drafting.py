"""The command for answers that broke off."""

from __future__ import annotations

from typing import Annotated

import typer

from ..clock import milliseconds
from ..errors import DraftNotFound, InvalidValue
from ..face import Store
from ..history import drafts as unfinished
from ..records import Draft
from . import render
from .options import Json, complete_session, existing, find
from .shown import Column, Row

DRAFT_COLUMNS = (
    Column("draft"),
    Column("session"),
    Column("behind", number=True),
    Column("kept"),
    Column("says", wide=True),
)
MINUTE = 60_000

AnySession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session's id, or the beginning of just one. None: all.",
        show_default=False,
        autocompletion=complete_session,
    ),
]
Finish = Annotated[
    str | None,
    typer.Option(
        "--finish",
        metavar="DRAFT",
        help="Append this one at its session's head, as it is.",
        show_default=False,
    ),
]
Discard = Annotated[
    str | None,
    typer.Option("--discard", metavar="DRAFT", help="Delete this one.", show_default=False),
]
Idle = Annotated[
    int,
    typer.Option("--idle", metavar="MINUTES", min=0, help="Only those that got nothing since."),
]


def drafts(
    ctx: typer.Context,
    session: AnySession = None,
    finish: Finish = None,
    discard: Discard = None,
    idle: Idle = 0,
    json: Json = False,
) -> None:
    """List answers that broke off, or are being streamed.

    It finishes or discards one, too. DRAFT is its id, or the beginning of just one.
    """
    if finish is not None and discard is not None:
        raise InvalidValue("a draft is finished or discarded, not both")
    with existing(ctx) as store:
        found = store.drafts(
            None if session is None else find(store, session).id,
            before=milliseconds(None) - idle * MINUTE if idle else None,
        )
        if finish is not None:
            draft = _one(found, finish)
            seq = store.finish_draft(draft).seq
            said = f"{draft.session_id}: the draft is its message {seq}"
            render.answer({"session": draft.session_id, "position": seq}, said, json=json)
        elif discard is not None:
            _discard(store, _one(found, discard), json=json)
        else:
            if json:
                render.print_json_list(each._asdict() for each in found)
            elif not found:
                render.say("no drafts")
            else:
                render.table(DRAFT_COLUMNS, map(_row, found))


def _one(found: list[Draft], given: str) -> Draft:
    """Return the draft whose id begins so. Raises DraftNotFound, InvalidValue."""
    named = [each for each in found if given and each.draft.startswith(given)]
    if not named:
        raise DraftNotFound(given)
    if len(named) > 1:
        raise InvalidValue(f"{len(named)} drafts begin with {given!r}; write more of it")
    return named[0]


def _discard(store: Store, draft: Draft, *, json: bool) -> None:
    done = store.discard_draft(draft)
    said = f"{done.session_id}: the draft is gone"
    render.answer(done._asdict(), said, json=json)


def _row(draft: Draft) -> Row:
    says = render.one_line(unfinished.draft_text(draft))
    return draft.draft[:20], draft.session_id, draft.head, render.moment(draft.at), says
