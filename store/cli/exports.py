"""The commands that bring sessions out: export, move."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InvalidValue
from ..exporting import (
    PROGRAM_NAMES,
    Exported,
    Only,
    Shape,
    check_move,
    export_session,
    export_store,
    put_session,
    session_lines,
    store_lines,
)
from ..text import format_count
from . import render
from .options import (
    FieldChanges,
    Json,
    LinePosition,
    MomentText,
    OptionalSession,
    PolicyName,
    SessionId,
    find_session,
    open_existing_store,
    parse_moment_option,
    require_consent,
    require_new,
    resolve_policy,
)
from .terminal import escape_controls

OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The output file, readable only by you.",
        show_default="stdout",
    ),
]
ReplaceOutput = Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")]
ViewExport = Annotated[
    bool, typer.Option("--view", help="Export the messages for the model instead.")
]
ExportShape = Annotated[
    Shape | None,
    typer.Option(
        "--as",
        help="The format: of a provider, of a program, or a page.",
        show_default="the messages as they are; those of `openai` with --view",
    ),
]


SaidOnly = Annotated[
    Only | None,
    typer.Option("--only", help="Only the messages that were said: no prompts, no tools."),
]
MaskTexts = Annotated[
    bool,
    typer.Option(
        "--mask", help="On a page, ~ for home folders and dots for what looks like a key."
    ),
]
WholeStore = Annotated[
    bool,
    typer.Option("--all", help="Write the whole store, for `import` to restore it."),
]
ExportedOwner = Annotated[
    str | None,
    typer.Option("--owner", help="With --all, only the sessions of this owner."),
]


def complete_program(incomplete: str) -> list[str]:
    """Return the programs whose names begin so, for a shell."""
    return [name for name in PROGRAM_NAMES if name.startswith(incomplete)]


TargetProgram = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="PROGRAM",
        help=f"The program: {', '.join(PROGRAM_NAMES)}.",
        autocompletion=complete_program,
        show_default=False,
    ),
]
MoveConsent = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
ViewMove = Annotated[
    bool, typer.Option("--view", help="Move the messages for the model, not the whole line.")
]

SESSION_PARAMETERS = {
    "session": "SESSION",
    "view": "--view",
    "at": "--at",
    "shape": "--as",
    "only": "--only",
    "mask": "--mask",
}
"""The parameters for a single session only, and their names on the command line."""
VIEW_PARAMETERS = {"policy": "--policy", "fields": "--set"}
"""The parameters for views only, and their options."""


def export(
    ctx: typer.Context,
    session: OptionalSession = None,
    every: WholeStore = False,
    owner: ExportedOwner = None,
    output: OutputFile = None,
    force: ReplaceOutput = False,
    view: ViewExport = False,
    at: LinePosition = None,
    now: MomentText = None,
    policy: PolicyName = "default",
    fields: FieldChanges = None,
    shape: ExportShape = None,
    only: SaidOnly = None,
    mask: MaskTexts = False,
    json: Json = False,
) -> None:
    """Write a session's raw messages, one JSON object a line.

    `import` reads them back equal. --all writes everything of every session, --as the format of
    another program, or a page for people.
    """
    if not view:
        _refuse_view_options(ctx)
    if every:
        _export_whole_store(ctx, owner, output, force=force, json=json)
        return
    if owner is not None:
        raise InvalidValue("--owner applies to the whole store; add --all")
    if session is None:
        raise InvalidValue("name a session, or use --all")
    rules, moment = resolve_policy(policy, fields), parse_moment_option(now)
    with open_existing_store(ctx) as store:
        name = find_session(store, session).id
        asked: Any = {"shape": shape, "at": at, "policy": rules if view else None, "now": moment}
        asked |= {"only": only, "mask": mask}
        if output is None:
            render.write_lines(
                session_lines(store, name, ascii_only=not render.is_unicode_output(), **asked).lines
            )
            return
        require_new(output, replace=force)
        done = export_session(store, name, output, replace=force, **asked)
    _print_export(done, json=json, messages=done.messages, masked=mask)


def _refuse_view_options(ctx: typer.Context) -> None:
    for name, option in VIEW_PARAMETERS.items():
        source = ctx.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            raise InvalidValue(f"{option} applies to the messages for the model; add --view")


def _print_export(done: Exported, *, json: bool, masked: bool = False, **counts: int) -> None:
    """Report the written file, its counts and its use."""
    fields: dict[str, Any] = {"file": str(done.path), **counts}
    told = (format_count(count, things[:-1]) for things, count in counts.items())
    texts = [f"{' with '.join(told)} written to {done.path}"]
    if masked:
        fields.update(homes=done.homes, keys=done.keys)
        homes = format_count(done.homes, "home folder")
        texts.append(f"masked: {homes} and {format_count(done.keys, 'key')}")
    if done.advice:
        fields["next"] = done.advice
        texts.append(done.advice)
    render.print_answer(fields, *texts, json=json)


def _export_whole_store(
    ctx: typer.Context, owner: str | None, output: Path | None, *, force: bool, json: bool
) -> None:
    if any(ctx.params[name] for name in SESSION_PARAMETERS):
        raise InvalidValue(
            f"--all cannot be combined with {', '.join(SESSION_PARAMETERS.values())}"
        )
    with open_existing_store(ctx) as store:
        if output is None:
            plain = not render.is_unicode_output()
            render.write_lines(store_lines(store, Counter(), owner=owner, ascii_only=plain))
            return
        require_new(output, replace=force)
        done = export_store(store, output, owner=owner, replace=force)
    _print_export(done, json=json, sessions=done.sessions, messages=done.messages)


def move(
    ctx: typer.Context,
    session: SessionId,
    to: TargetProgram,
    view: ViewMove = False,
    at: LinePosition = None,
    now: MomentText = None,
    policy: PolicyName = "default",
    fields: FieldChanges = None,
    yes: MoveConsent = False,
    json: Json = False,
) -> None:
    """Continue a session in another program; asks first.

    It becomes one of the program's own, beside those that are there, and stays in the store.
    """
    if not view:
        _refuse_view_options(ctx)
    if to not in PROGRAM_NAMES:
        raise InvalidValue(f"there is no program {to!r}; there are {', '.join(PROGRAM_NAMES)}")
    rules, moment = resolve_policy(policy, fields), parse_moment_option(now)
    with open_existing_store(ctx) as store:
        name = find_session(store, session).id
        asked: Any = {"at": at, "policy": rules if view else None, "now": moment}
        written = session_lines(store, name, shape=to, **asked)
        found = check_move(written)
        target = f"`{found.import_command}`" if found.place is None else str(found.place)
        count = format_count(written.messages, "message")
        question = f"Write {count} to {target}"
        aim = f"write to {target}"
        require_consent(escape_controls(question), yes=yes, aim=aim, refusal="nothing was written")
        file = put_session(store, written)
    told = {"file": None if file is None else str(file), "messages": written.messages}
    texts = f"{count} written to {target}", found.command
    render.print_answer({**told, "next": found.command}, *texts, json=json)
