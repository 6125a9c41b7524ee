"""Commands about single messages: annotations, annotate, redact."""

from __future__ import annotations

import json as json_format
from typing import Annotated

import typer

from . import render
from .options import (
    Json,
    OwnerFilter,
    SessionId,
    SessionOrStore,
    find_session,
    open_existing_store,
    require_consent,
)
from .terminal import Column, TableRow

NOTE_COLUMNS = (
    Column("session", wide=True, id=True),
    Column("#", number=True),
    Column("key"),
    Column("value", clip="end"),
    Column("when", spare=1),
)

NotePosition = Annotated[int, typer.Argument(metavar="N", help="A message's position.")]
NoteKey = Annotated[str, typer.Argument(metavar="KEY", help="The key of the note, such as rating.")]
NoteValue = Annotated[
    str,
    typer.Argument(metavar="VALUE", help="JSON, else a text; null removes the note."),
]
KeyFilter = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", help="Only notes with this key.", show_default="all"),
]

RedactedPosition = Annotated[int, typer.Argument(metavar="N", help="The message's position.")]
RedactionReason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="The reason, which is recorded.")
]
RedactionAuthor = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="The person who redacts, recorded too.", show_default=False
    ),
]
RedactionConsent = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def annotate(
    ctx: typer.Context,
    session: SessionId,
    position: NotePosition,
    key: NoteKey,
    value: NoteValue,
    json: Json = False,
) -> None:
    """Add a note to a message, such as a rating.

    The message does not change.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session).id
        try:
            parsed = json_format.loads(value)
        except (ValueError, RecursionError):
            parsed = value
        note = store.annotate(found, position, key, parsed)
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
    """List the notes on messages.

    Those on a session's line, or in the whole store.
    """
    with open_existing_store(ctx) as store:
        found = session and find_session(store, session).id
        notes = store.annotations(found, key=key, owner=owner)
    if json:
        render.print_json_list(each._asdict() for each in notes)
    elif not notes:
        render.print_lines("nothing is noted; `convostore annotate` notes something")
    else:
        rows: list[TableRow] = []
        for note in notes:
            value = render.shorten_to_line(render.format_json(note.value))
            rows.append((note.session_id, note.seq, note.key, value, render.format_moment(note.at)))
        render.show_table(NOTE_COLUMNS, rows)


def redact(
    ctx: typer.Context,
    session: SessionId,
    position: RedactedPosition,
    reason: RedactionReason,
    by: RedactionAuthor = None,
    yes: RedactionConsent = False,
    json: Json = False,
) -> None:
    """Overwrite the content of a message everywhere; asks first.

    The reason is recorded.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session)
        question = f"Redact message {position} of {found.id}? This cannot be undone"
        aim, refusal = "redact permanently", "nothing was redacted"
        require_consent(question, yes=yes, aim=aim, refusal=refusal)
        done = store.redact(found.id, position, reason, by=by)
    asked = "" if done.by is None else f" by {done.by}"
    said = f"{found.id}: message {position} says nothing any more, redacted{asked}: {done.reason}"
    left = [f"compaction {each}: its summary may tell of it" for each in done.compactions]
    left += [f"{each}: this copy may hold it" for each in done.copies]
    if not done.purged:
        left.append("freed bytes of the file may hold it until `convostore purge`")
    render.print_answer(done._asdict(), said, *left, json=json)
