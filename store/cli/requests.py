"""The command that shows a whole request: context."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..errors import InvalidValue, describe_read_error
from . import render
from .options import (
    FieldChanges,
    Json,
    LinePosition,
    MomentText,
    PolicyName,
    ProviderFormat,
    SessionId,
    find_session,
    open_existing_store,
    parse_moment_option,
    resolve_policy,
)
from .terminal import Column, TableRow

if TYPE_CHECKING:
    from ..context import Context, Tools
    from ..records import View

LAYER_COLUMNS = (
    Column("layer"),
    Column("messages", number=True),
    Column("tokens", number=True),
    Column("saved", number=True),
    Column("share", number=True),
)

REQUEST_FIELDS = ("messages", "tools", "layers", "tokens", "fixed_tokens", "open_turn", "notices")
"""The fields of a request that are printed as JSON, besides those of its view."""

NewInput = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="TEXT",
        help="The new input.",
        show_default="the last user message is current",
    ),
]
LawFolder = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="The folder of CODE_LAW.md.",
        show_default="the session's project root",
    ),
]
SystemFile = Annotated[
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
TodoRecap = Annotated[
    str | None,
    typer.Option(
        "--todo",
        metavar="TEXT",
        help="The remaining todos.",
        show_default="what the last todo list says",
    ),
]


class PrintedFormat(StrEnum):
    """What a request is printed as."""

    openai = "openai"
    responses = "responses"
    anthropic = "anthropic"
    gemini = "gemini"
    react = "react"
    json = "json"


PrintedFormatOption = Annotated[
    PrintedFormat,
    typer.Option("--format", help="Messages of an API, ReAct text, or all data of the request."),
]


def context(
    ctx: typer.Context,
    session: SessionId,
    user: NewInput = None,
    root: LawFolder = None,
    system: SystemFile = None,
    tools: ToolsFile = None,
    todo: TodoRecap = None,
    policy: PolicyName = "turns",
    fields: FieldChanges = None,
    at: LinePosition = None,
    now: MomentText = None,
    format: PrintedFormatOption = PrintedFormat.openai,  # noqa: A002 - the option's name
    json: Json = False,
) -> None:
    """Print a whole request: prompts, rules, history, input, turn.

    Its layers go to standard error.
    """
    with open_existing_store(ctx) as store:
        built = store.context(
            find_session(store, session).id,
            system=_read_text_file(system),
            tools=_parse_tools(_read_text_file(tools)),
            user_input=user,
            todo_recap=todo,
            root=root,
            policy=resolve_policy(policy, fields),
            now=parse_moment_option(now),
            at=at,
            format="openai" if format is PrintedFormat.json else format.value,
        )
    if json or format is PrintedFormat.json:
        render.print_json(_build_context_fields(built))
        return
    if format is PrintedFormat.react:
        render.print_lines(built.text)
    else:
        render.print_request(built.messages, built.system)
    sys.stdout.flush()
    render.show_table(LAYER_COLUMNS, build_layer_rows(built), error=True)
    for notice in built.notices:
        render.print_remark(notice)


def _read_text_file(path: Path | None) -> str | None:
    """Return the text of a file to send. Raises InvalidValue for a file that is no text."""
    try:
        return None if path is None else path.read_text("utf-8")
    except UnicodeError as error:
        raise InvalidValue(
            f"{path} is not a text that can be sent: {describe_read_error(error)}"
        ) from error


def _parse_tools(text: str | None) -> Tools | None:
    """Return the definitions of tools from a JSON list; any other text unchanged."""
    try:
        found = json_format.loads(text or "")
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list) else text


def _build_context_fields(built: Context) -> dict[str, Any]:
    view = built.view
    return {
        "session": view.session_id,
        "at": view.at,
        **{name: getattr(built, name) for name in REQUEST_FIELDS},
        "saved_by_rule": view.stats.saved_by_rule,
        "replaced": view.stats.replaced,
    }


def build_view_fields(
    built: View,
    hidden: Iterable[NamedTuple],
    format: ProviderFormat,  # noqa: A002 - what it is
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
    if format is not ProviderFormat.openai or len(entries) != len(built.messages):
        return {**told, "entries": entries, "system": built.system, "messages": built.messages}
    pairs = zip(entries, built.messages, strict=True)
    return {**told, "entries": [{**entry, "sent": sent} for entry, sent in pairs]}


def build_layer_rows(built: Context) -> list[TableRow]:
    """Return a row for each layer, and one for the whole.

    Each has the number of messages, their tokens, what the rules saved in them, and their share.
    """
    entries = built.view.entries
    saved = {entry.seq: entry.tokens_saved for entry in entries if entry.seq is not None}
    rows = [_build_layer_row(built, layer, saved) for layer in built.layers]
    less = sum(saved.values())
    return [*rows, ("together", len(built.pieces), built.tokens, less or None, "")]


def _build_layer_row(built: Context, layer: str, saved: dict[int, int]) -> TableRow:
    places = [piece.seq for piece in built.pieces if piece.layer == layer]
    less = sum(saved.get(seq, 0) for seq in places if seq is not None)
    tokens = built.layers[layer]
    share = tokens / (built.tokens or 1)
    return layer, len(places), tokens, less or None, f"{share:.0%}"
