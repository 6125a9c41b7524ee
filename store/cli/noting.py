"""Commands about notes beside messages: annotate, annotations."""

from __future__ import annotations

import json as json_format
from typing import Annotated, Any

import typer

from ..records import Note
from . import render
from .counting import SomeSession
from .options import Json, SessionId, existing, find
from .show import OfOwner
from .shown import Column, Row

COLUMNS = (
    Column("session", wide=True, id=True),
    Column("#", number=True),
    Column("key"),
    Column("value", clip="end"),
    Column("when", spare=1),
)

Position = Annotated[int, typer.Argument(metavar="N", help="A message's position.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="What is noted, such as rating.")]
Value = Annotated[
    str,
    typer.Argument(metavar="VALUE", help="JSON, else a text; null takes the note away."),
]
OfKey = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", help="Those of this key.", show_default="all"),
]


def annotate(
    ctx: typer.Context,
    session: SessionId,
    position: Position,
    key: Key,
    value: Value,
    json: Json = False,
) -> None:
    """Note something beside a message, such as a rating.

    The message stays as it is.
    """
    with existing(ctx) as store:
        found = find(store, session).id
        note = store.annotate(found, position, key, _value(value))
    if note is None:
        render.answer(None, f"{found} {position}: no {key}", json=json)
    else:
        said = f"{found} {position}: {key} = {render.json_text(note.value)}"
        render.answer(note._asdict(), said, json=json)


def annotations_(
    ctx: typer.Context,
    session: SomeSession = None,
    key: OfKey = None,
    owner: OfOwner = None,
    json: Json = False,
) -> None:
    """List what is noted beside messages.

    On a session's line, or in the whole store.
    """
    with existing(ctx) as store:
        found = session and find(store, session).id
        notes = store.annotations(found, key=key, owner=owner)
    if json:
        render.print_json_list(each._asdict() for each in notes)
    elif not notes:
        render.say("nothing is noted; `convostore annotate` notes something")
    else:
        render.table(COLUMNS, map(_row, notes))


def _value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself if it is no JSON."""
    try:
        return json_format.loads(text)
    except (ValueError, RecursionError):
        return text


def _row(note: Note) -> Row:
    value = render.one_line(render.json_text(note.value))
    return note.session_id, note.seq, note.key, value, render.moment(note.at)
