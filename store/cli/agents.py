"""The command that serves coding agents: mcp."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidValue, StoreError
from ..text import parse_object
from . import render
from .options import STORE_VARIABLE, StorePlace, get_place, locate_own_store, open_store

if TYPE_CHECKING:
    from .installation import ConfigurationChange

ServedStore = Annotated[
    str | None,
    typer.Argument(
        metavar="STORE", help="The store: a file, or an SQLAlchemy URL.", show_default="your own"
    ),
]
ServedOwner = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Serve this owner's sessions alone.")
]
ServedReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Write nothing to the store; no forks and notes.")
]
ShownSecrets = Annotated[
    bool, typer.Option("--secrets", help="Show texts that look like keys, instead of dots.")
]
PrintedProgram = Annotated[
    str | None,
    typer.Option(
        "--print-config",
        metavar="PROGRAM",
        help="Print the lines to paste into the configuration of claude-code, codex, gemini-cli,"
        " cursor or opencode.",
    ),
]
InstalledProgram = Annotated[
    str | None,
    typer.Option(
        "--install", metavar="PROGRAM", help="Enter the server in a program's configuration."
    ),
]
RemovedProgram = Annotated[
    str | None,
    typer.Option("--uninstall", metavar="PROGRAM", help="Take the server out again."),
]
InstalledHook = Annotated[
    bool,
    typer.Option(
        "--hook", help="With --install: give new sessions of a project a digest of the last ones."
    ),
]
PrintedDigest = Annotated[
    bool,
    typer.Option(
        "--digest",
        help="Print the digest of a project's last sessions; a hook calls this with its JSON.",
    ),
]
WriteChange = Annotated[bool, typer.Option("--yes", help="Make the change that is shown.")]


def mcp(
    ctx: typer.Context,
    store: ServedStore = None,
    owner: ServedOwner = None,
    read_only: ServedReadOnly = False,
    secrets: ShownSecrets = False,
    print_config: PrintedProgram = None,
    install: InstalledProgram = None,
    uninstall: RemovedProgram = None,
    hook: InstalledHook = False,
    digest: PrintedDigest = False,
    yes: WriteChange = False,
) -> None:
    """Serve past sessions to coding agents by MCP, over stdio."""
    if digest:
        with suppress(Exception):  # a hook that fails would disturb the session that begins
            _print_digest(_choose_served_place(ctx, store), owner)
        return
    if find_spec("mcp") is None:
        raise StoreError("the server needs another library: install convostore[mcp]")
    from .agent_programs import build_command, render_configuration
    from .installation import plan_install, plan_uninstall

    options = _list_given_options(store, owner, read_only=read_only, secrets=secrets)
    if print_config is not None:
        render.print_lines(render_configuration(print_config, build_command(options)).rstrip())
    elif install is not None:
        _make_changes(plan_install(install, build_command(options), hook=hook), yes=yes)
    elif uninstall is not None:
        _make_changes(plan_uninstall(uninstall), yes=yes)
    else:
        if sys.stdout.isatty():
            raise InvalidValue(
                "mcp is started by an agent, not on a terminal; --print-config prints how,"
                " such as `convostore mcp --print-config claude-code`"
            )
        ctx.obj = _choose_served_place(ctx, store)
        _serve(ctx, owner, read_only=read_only, secrets=secrets)


def _make_changes(changes: list[ConfigurationChange], *, yes: bool) -> None:
    """Print changes as diffs, and make them if that was asked for."""
    render.print_lines(*(change.render().rstrip() for change in changes))
    if not yes:
        render.print_remark("nothing was written; --yes makes this change")
        return
    for change in changes:
        change.write()
    render.print_lines(*(f"wrote {change.path}" for change in changes))


def _print_digest(place: StorePlace, owner: str | None) -> None:
    """Print the digest for the folder that a hook tells, if there is a store with its sessions."""
    from .. import Store
    from ..mcp import describe_last_sessions

    told = parse_object("" if sys.stdin.isatty() else sys.stdin.read())
    folder = str(told.get("cwd") or Path.cwd())
    begun = str(told.get("session_id") or "")
    with Store(place.target, read_only=True) as opened:
        source = opened if owner is None else opened.scoped(owner)
        text = describe_last_sessions(source, folder, begun)
    if text:
        render.print_lines(text)


def _serve(ctx: typer.Context, owner: str | None, *, read_only: bool, secrets: bool) -> None:
    """Serve the store; the user's own one follows the programs of this machine."""
    gc.disable()  # what is imported is alive until the end; walks through it take a tenth
    from ..mcp import build_server
    from .background_import import Follower

    is_own = get_place(ctx).target == str(locate_own_store())
    with open_store(ctx, read_only=read_only) as opened:
        if is_own and owner is None and not read_only:
            follower = Follower(opened, get_place(ctx).file)
            told, pause = follower.describe, follower.give_way
            server = build_server(opened, secrets=secrets, describe_progress=told, give_way=pause)
            with follower:
                _run_server(server)
        else:
            source = opened if owner is None else opened.scoped(owner)
            _run_server(build_server(source, read_only=read_only, secrets=secrets))


def _run_server(server: Any) -> None:
    gc.freeze()
    gc.enable()
    server.run("stdio")


def _list_given_options(
    store: str | None, owner: str | None, *, read_only: bool, secrets: bool
) -> list[str]:
    """Return the given options of a command line, as a configuration has them."""
    named = [store] if store else []
    named += ["--owner", owner] if owner else []
    switches = {"--read-only": read_only, "--secrets": secrets}
    return named + [name for name, is_on in switches.items() if is_on]


def _choose_served_place(ctx: typer.Context, store: str | None) -> StorePlace:
    """Return the store that is named, otherwise the user's own."""
    if store is not None:
        return StorePlace(store)
    given = get_place(ctx)
    if given.named or os.environ.get(STORE_VARIABLE):
        return given
    return StorePlace(str(locate_own_store()), named=False)
