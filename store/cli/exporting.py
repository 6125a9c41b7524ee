"""The command that brings sessions out: export."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InvalidValue
from ..exporting import (
    Exported,
    Shape,
    export_session,
    export_store,
    session_lines,
    store_lines,
)
from ..text import format_count
from . import render
from .options import (
    At,
    Fields,
    Json,
    MaybeSession,
    Now,
    PolicyName,
    existing,
    find,
    moment_of,
    policy_of,
    require_new,
)

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to, readable by you alone.",
        show_default="stdout",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]
AsView = Annotated[
    bool, typer.Option("--view", help="Export what would be sent to the model instead.")
]
As = Annotated[
    Shape | None,
    typer.Option(
        "--as",
        help="What it is to be: of a provider, a program, or a page.",
        show_default="the messages as they are; those of `openai` with --view",
    ),
]


Every = Annotated[
    bool,
    typer.Option("--all", help="Write the whole store, so that `import` makes it again."),
]


ALONE = {"session": "SESSION", "view": "--view", "at": "--at", "shape": "--as"}
"""The parameters for a single session only, and their names on the command line."""
OF_VIEWS = {"policy": "--policy", "fields": "--set"}
"""The parameters for views only, and their options."""


def export(
    ctx: typer.Context,
    session: MaybeSession = None,
    every: Every = False,
    output: Output = None,
    force: Force = False,
    view: AsView = False,
    at: At = None,
    now: Now = None,
    policy: PolicyName = "default",
    fields: Fields = None,
    shape: As = None,
    json: Json = False,
) -> None:
    """Write a session's raw messages, one JSON object a line.

    `import` reads them back equal. With --all it is all that there is of every session. With --as
    it is what another program goes on with, or a page for people.
    """
    if not view:
        _refuse_what_is_of_views(ctx)
    if every:
        _export_all(ctx, output, force=force, json=json)
        return
    if session is None:
        raise InvalidValue("name a session, or --all of them")
    rules, moment = policy_of(policy, fields), moment_of(now)
    with existing(ctx) as store:
        name = find(store, session).id
        asked: Any = {"shape": shape, "at": at, "policy": rules if view else None, "now": moment}
        if output is None:
            render.write(
                session_lines(store, name, ascii_only=not render.speaks_unicode(), **asked).lines
            )
            return
        require_new(output, replace=force)
        done = export_session(store, name, output, replace=force, **asked)
    _say_written(done, json=json, messages=done.messages)


def _refuse_what_is_of_views(ctx: typer.Context) -> None:
    for name, option in OF_VIEWS.items():
        source = ctx.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            raise InvalidValue(f"{option} is about what is sent to the model; add --view")


def _say_written(done: Exported, *, json: bool, **counts: int) -> None:
    """Report the written file, its counts and its use."""
    told = " with ".join(format_count(count, things[:-1]) for things, count in counts.items())
    fields: dict[str, Any] = {"file": str(done.path), **counts}
    texts = [f"{told} written to {done.path}"]
    if done.advice:
        fields["next"] = done.advice
        texts.append(done.advice)
    render.answer(fields, *texts, json=json)


def _export_all(ctx: typer.Context, output: Path | None, *, force: bool, json: bool) -> None:
    if any(ctx.params[name] for name in ALONE):
        raise InvalidValue(f"--all goes without {', '.join(ALONE.values())}")
    with existing(ctx) as store:
        if output is None:
            render.write(store_lines(store, Counter(), ascii_only=not render.speaks_unicode()))
            return
        require_new(output, replace=force)
        done = export_store(store, output, replace=force)
    _say_written(done, json=json, sessions=done.sessions, messages=done.messages)
