"""The command that serves coding agents: mcp."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from ..errors import InvalidValue, StoreError
from . import render
from .options import STORE_VARIABLE, StorePlace, get_place, locate_own_store, open_store

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
    bool, typer.Option("--read-only", help="Write nothing but the index; no forks and notes.")
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


def mcp(
    ctx: typer.Context,
    store: ServedStore = None,
    owner: ServedOwner = None,
    read_only: ServedReadOnly = False,
    secrets: ShownSecrets = False,
    print_config: PrintedProgram = None,
) -> None:
    """Serve past sessions to coding agents by MCP, over standard input and output."""
    if find_spec("mcp") is None:
        raise StoreError("the server needs another library: install convostore[mcp]")
    from ..mcp import build_command, render_configuration, serve

    if print_config is not None:
        options = _list_given_options(store, owner, read_only=read_only, secrets=secrets)
        render.print_lines(render_configuration(print_config, build_command(options)).rstrip())
        return
    if sys.stdout.isatty():
        raise InvalidValue(
            "mcp is started by an agent, not on a terminal; --print-config prints how,"
            " such as `convostore mcp --print-config claude-code`"
        )
    ctx.obj = _choose_served_place(ctx, store)
    with open_store(ctx) as opened:
        source = opened if owner is None else opened.scoped(owner)
        serve(source, read_only=read_only, secrets=secrets)


def _list_given_options(
    store: str | None, owner: str | None, *, read_only: bool, secrets: bool
) -> list[str]:
    """Return what was given of a command line, as it is entered in a configuration."""
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
