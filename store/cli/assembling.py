"""The command that shows a whole request: context."""

from __future__ import annotations

import json as json_format
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..context import Context, Tools
from . import render
from .options import At, Fields, Json, Now, PolicyName, SessionId, existing, find, moment_of, policy_of
from .render import Cell, Column

COLUMNS = (
    Column("layer"),
    Column("messages", number=True),
    Column("tokens", number=True),
    Column("saved", number=True),
    Column("share", number=True),
)


User = Annotated[
    str | None,
    typer.Option("--user", metavar="TEXT", help="The new input.", show_default="the last user message is current"),
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
System = Annotated[Path | None, typer.Option("--system", metavar="FILE", help="A file with the system prompt.")]
ToolsFile = Annotated[
    Path | None,
    typer.Option("--tools", metavar="FILE", help="A file with the tools: a JSON list of definitions, or text."),
]
Todo = Annotated[
    str | None,
    typer.Option("--todo", metavar="TEXT", help="What is left to do.", show_default="what the last todo list says"),
]


class Format(StrEnum):
    """What a request is printed as."""

    openai = "openai"
    react = "react"
    json = "json"


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
    format: Annotated[  # noqa: A002 - the option's name
        Format, typer.Option("--format", help="The API's messages, ReAct text, or all that is known of the request.")
    ] = Format.openai,
    json: Json = False,
) -> None:
    """Print a whole request: prompts, project rules, history, input, running turn; on standard error its layers."""
    with existing(ctx) as store:
        built = store.context(
            find(store, session).id,
            system=_text(system),
            tools=_tools(tools),
            user_input=user,
            todo_recap=todo,
            root=root,
            policy=policy_of(policy, fields),
            now=moment_of(now),
            at=at,
        )
    if json or format is Format.json:
        render.print_json(_fields(built))
        return
    if format is Format.react:
        render.say(built.text)
    else:
        render.print_json_list(built.messages)
    sys.stdout.flush()
    render.table(COLUMNS, rows(built), error=True)


def _text(path: Path | None) -> str | None:
    return None if path is None else path.read_text(encoding="utf-8", errors="replace")


def _tools(path: Path | None) -> Tools | None:
    """Return what a file says of tools: definitions where it is a JSON list, else its text."""
    text = _text(path)
    try:
        found = json_format.loads(text or "")
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list) else text


def _fields(built: Context) -> dict[str, Any]:
    names = ("messages", "tools", "layers", "tokens", "open_turn")
    view = built.view
    facts = {"saved_by_rule": view.stats.saved_by_rule, "replaced": view.stats.replaced}
    return {"session": view.session_id, "at": view.at, **{name: getattr(built, name) for name in names}, **facts}


def rows(built: Context) -> list[tuple[Cell, ...]]:
    """Return each layer and the whole: its messages, its tokens, what rules saved in it, its share."""
    saved = {entry.seq: entry.tokens_saved for entry in built.view.entries if entry.seq is not None}
    rows: list[tuple[Cell, ...]] = []
    for layer, tokens in built.layers.items():
        pieces = [piece for piece in built.pieces if piece.layer == layer]
        less = sum(saved.get(piece.seq, 0) for piece in pieces if piece.seq is not None)
        rows.append((layer, len(pieces), tokens, less or None, f"{tokens / (built.tokens or 1):.0%}"))
    rows.append(("together", len(built.pieces), built.tokens, sum(saved.values()) or None, ""))
    return rows
