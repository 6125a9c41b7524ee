"""The command for answers that broke off."""

from __future__ import annotations

from typing import Annotated

import typer

from ..clock import resolve_now
from ..errors import DraftNotFound, InvalidValue
from ..face import Store
from ..history import drafts as unfinished
from ..records import Draft
from . import render
from .options import Json, complete_session, find_session, open_existing_store
from .shown import Column, TableRow

DRAFT_COLUMNS = (
    Column("draft"),
    Column("session"),
    Column("behind", number=True),
    Column("kept"),
    Column("says", wide=True),
)
MINUTE = 60_000

DraftSession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session's id, or the beginning of just one. None: all.",
        show_default=False,
        autocompletion=complete_session,
    ),
]
FinishOption = Annotated[
    str | None,
    typer.Option(
        "--finish",
        metavar="DRAFT",
        help="Append this one at its session's head, as it is.",
        show_default=False,
    ),
]
DiscardOption = Annotated[
    str | None,
    typer.Option("--discard", metavar="DRAFT", help="Delete this one.", show_default=False),
]
IdleMinutes = Annotated[
    int,
    typer.Option("--idle", metavar="MINUTES", min=0, help="Only those that got nothing since."),
]


def drafts(
    ctx: typer.Context,
    session: DraftSession = None,
    finish: FinishOption = None,
    discard: DiscardOption = None,
    idle: IdleMinutes = 0,
    json: Json = False,
) -> None:
    """List answers that broke off, or are being streamed.

    It finishes or discards one, too. DRAFT is its id, or the beginning of just one.
    """
    if finish is not None and discard is not None:
        raise InvalidValue("a draft is finished or discarded, not both")
    with open_existing_store(ctx) as store:
        found = store.drafts(
            None if session is None else find_session(store, session).id,
            before=resolve_now(None) - idle * MINUTE if idle else None,
        )
        if finish is not None:
            draft = _find_draft(found, finish)
            seq = store.finish_draft(draft).seq
            said = f"{draft.session_id}: the draft is its message {seq}"
            render.print_answer({"session": draft.session_id, "position": seq}, said, json=json)
        elif discard is not None:
            _discard_draft(store, _find_draft(found, discard), json=json)
        else:
            if json:
                render.print_json_list(each._asdict() for each in found)
            elif not found:
                render.print_lines("no drafts")
            else:
                render.show_table(DRAFT_COLUMNS, map(_build_draft_row, found))


def _find_draft(found: list[Draft], given: str) -> Draft:
    """Return the draft whose id begins so. Raises DraftNotFound, InvalidValue."""
    named = [each for each in found if given and each.draft.startswith(given)]
    if not named:
        raise DraftNotFound(given)
    if len(named) > 1:
        raise InvalidValue(f"{len(named)} drafts begin with {given!r}; write more of it")
    return named[0]


def _discard_draft(store: Store, draft: Draft, *, json: bool) -> None:
    done = store.discard_draft(draft)
    said = f"{done.session_id}: the draft is gone"
    render.print_answer(done._asdict(), said, json=json)


def _build_draft_row(draft: Draft) -> TableRow:
    says = render.shorten_to_line(unfinished.render_draft_text(draft))
    return draft.draft[:20], draft.session_id, draft.head, render.format_moment(draft.at), says
