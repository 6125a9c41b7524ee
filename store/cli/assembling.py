"""The command that shows a whole request: context."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..errors import InvalidValue, in_words
from . import render
from .options import (
    At,
    Fields,
    Json,
    Now,
    PolicyName,
    Provider,
    SessionId,
    existing,
    find,
    moment_of,
    policy_of,
)
from .shown import Column, Row

if TYPE_CHECKING:
    from ..context import Context, Tools
    from ..records import View

COLUMNS = (
    Column("layer"),
    Column("messages", number=True),
    Column("tokens", number=True),
    Column("saved", number=True),
    Column("share", number=True),
)

FIELDS = ("messages", "tools", "layers", "tokens", "fixed_tokens", "open_turn", "notices")
"""The fields of a request that are printed as JSON, besides those of its view."""

User = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="TEXT",
        help="The new input.",
        show_default="the last user message is current",
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Where CODE_LAW.md is.",
        show_default="the session's project root",
    ),
]
System = Annotated[
    Path | None, typer.Option("--system", metavar="FILE", help="A file with the system prompt.")
]
ToolsFile = Annotated[
    Path | None,
    typer.Option(
        "--tools",
        metavar="FILE",
        help="A file with the tools: a JSON list of definitions, or text.",
    ),
]
Todo = Annotated[
    str | None,
    typer.Option(
        "--todo",
        metavar="TEXT",
        help="What is left to do.",
        show_default="what the last todo list says",
    ),
]


class Format(StrEnum):
    """What a request is printed as."""

    openai = "openai"
    responses = "responses"
    anthropic = "anthropic"
    gemini = "gemini"
    react = "react"
    json = "json"


FormatName = Annotated[
    Format,
    typer.Option(
        "--format", help="An API's messages, ReAct text, or all that is known of the request."
    ),
]


def context(
    ctx: typer.Context,
    session: SessionId,
    user: User = None,
    root: Root = None,
    system: System = None,
    tools: ToolsFile = None,
    todo: Todo = None,
    policy: PolicyName = "turns",
    fields: Fields = None,
    at: At = None,
    now: Now = None,
    format: FormatName = Format.openai,  # noqa: A002 - the option's name
    json: Json = False,
) -> None:
    """Print a whole request: prompts, rules, history, input, turn.

    Its layers go to standard error.
    """
    with existing(ctx) as store:
        built = store.context(
            find(store, session).id,
            system=_text(system),
            tools=_tools(_text(tools)),
            user_input=user,
            todo_recap=todo,
            root=root,
            policy=policy_of(policy, fields),
            now=moment_of(now),
            at=at,
            format="openai" if format is Format.json else format.value,
        )
    if json or format is Format.json:
        render.print_json(_fields(built))
        return
    _print_request(built, format)
    sys.stdout.flush()
    render.table(COLUMNS, rows(built), error=True)
    for notice in built.notices:
        render.remark(notice)


def _print_request(built: Context, format: Format) -> None:  # noqa: A002 - as above
    if format is Format.react:
        render.say(built.text)
    else:
        render.print_request(built.messages, built.system)


def _text(path: Path | None) -> str | None:
    """Return the text of a file to send. Raises InvalidValue for a file that is no text."""
    try:
        return None if path is None else path.read_text("utf-8")
    except UnicodeError as error:
        raise InvalidValue(f"{path} is no text that can be sent: {in_words(error)}") from error


def _tools(text: str | None) -> Tools | None:
    """Return the definitions of tools from a JSON list; any other text unchanged."""
    try:
        found = json_format.loads(text or "")
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list) else text


def _fields(built: Context) -> dict[str, Any]:
    view = built.view
    return {
        "session": view.session_id,
        "at": view.at,
        **{name: getattr(built, name) for name in FIELDS},
        "saved_by_rule": view.stats.saved_by_rule,
        "replaced": view.stats.replaced,
    }


def explained(
    built: View,
    hidden: Iterable[NamedTuple],
    format: Provider,  # noqa: A002 - what it is
) -> dict[str, Any]:
    """Return a view as JSON: its numbers, and each entry with the message that is sent.

    If the messages do not match the entries one by one, they are listed beside the entries.
    """
    told = {
        "session": built.session_id,
        "at": built.at,
        **built.stats._asdict(),
        "hidden": [each._asdict() for each in hidden],
    }
    entries = [entry._asdict() for entry in built.entries]
    if format is not Provider.openai or len(entries) != len(built.messages):
        return {**told, "entries": entries, "system": built.system, "messages": built.messages}
    pairs = zip(entries, built.messages, strict=True)
    return {**told, "entries": [{**entry, "sent": sent} for entry, sent in pairs]}


def rows(built: Context) -> list[Row]:
    """Return a row for each layer, and one for the whole.

    Each has the number of messages, their tokens, what the rules saved in them, and their share.
    """
    entries = built.view.entries
    saved = {entry.seq: entry.tokens_saved for entry in entries if entry.seq is not None}
    rows = [_row(built, layer, saved) for layer in built.layers]
    less = sum(saved.values())
    return [*rows, ("together", len(built.pieces), built.tokens, less or None, "")]


def _row(built: Context, layer: str, saved: dict[int, int]) -> Row:
    places = [piece.seq for piece in built.pieces if piece.layer == layer]
    less = sum(saved.get(seq, 0) for seq in places if seq is not None)
    tokens = built.layers[layer]
    share = tokens / (built.tokens or 1)
    return layer, len(places), tokens, less or None, f"{share:.0%}"
