"""Commands about notes beside messages: annotate, annotations."""

from __future__ import annotations

import json as json_format
from typing import Annotated, Any

import typer

from ..records import Note
from . import render
from .counting import SessionOrStore
from .options import Json, SessionId, find_session, open_existing_store
from .show import OwnerFilter
from .shown import Column, TableRow

NOTE_COLUMNS = (
    Column("session", wide=True, id=True),
    Column("#", number=True),
    Column("key"),
    Column("value", clip="end"),
    Column("when", spare=1),
)

NotePosition = Annotated[int, typer.Argument(metavar="N", help="A message's position.")]
NoteKey = Annotated[str, typer.Argument(metavar="KEY", help="What is noted, such as rating.")]
NoteValue = Annotated[
    str,
    typer.Argument(metavar="VALUE", help="JSON, else a text; null takes the note away."),
]
KeyFilter = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", help="Those of this key.", show_default="all"),
]


def annotate(
    ctx: typer.Context,
    session: SessionId,
    position: NotePosition,
    key: NoteKey,
    value: NoteValue,
    json: Json = False,
) -> None:
    """Note something beside a message, such as a rating.

    The message stays as it is.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session).id
        note = store.annotate(found, position, key, _parse_note_value(value))
    if note is None:
        render.print_answer(None, f"{found} {position}: no {key}", json=json)
    else:
        said = f"{found} {position}: {key} = {render.format_json(note.value)}"
        render.print_answer(note._asdict(), said, json=json)


def annotations_(
    ctx: typer.Context,
    session: SessionOrStore = None,
    key: KeyFilter = None,
    owner: OwnerFilter = None,
    json: Json = False,
) -> None:
    """List what is noted beside messages.

    On a session's line, or in the whole store.
    """
    with open_existing_store(ctx) as store:
        found = session and find_session(store, session).id
        notes = store.annotations(found, key=key, owner=owner)
    if json:
        render.print_json_list(each._asdict() for each in notes)
    elif not notes:
        render.print_lines("nothing is noted; `convostore annotate` notes something")
    else:
        render.show_table(NOTE_COLUMNS, map(_build_note_row, notes))


def _parse_note_value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself if it is no JSON."""
    try:
        return json_format.loads(text)
    except (ValueError, RecursionError):
        return text


def _build_note_row(note: Note) -> TableRow:
    value = render.shorten_to_line(render.format_json(note.value))
    return note.session_id, note.seq, note.key, value, render.format_moment(note.at)
