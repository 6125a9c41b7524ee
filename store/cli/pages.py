"""The command that shows a store in a browser: browse."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from typing import Annotated

import typer

from ..errors import StoreError
from . import render
from .options import OwnerFilter, get_place, open_existing_store

NEEDED_LIBRARIES = ("jinja2", "starlette", "uvicorn")

PageHost = Annotated[
    str, typer.Option("--host", metavar="NAME", help="The name or address to listen at.")
]
PagePort = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65_535, help="The port; 0 is a free one.")
]
OpenBrowser = Annotated[bool, typer.Option("--open", help="Open the pages in a browser.")]


def browse(
    ctx: typer.Context,
    port: PagePort = 8765,
    host: PageHost = "127.0.0.1",
    owner: OwnerFilter = None,
    show: OpenBrowser = False,
) -> None:
    """Show the store in a browser: conversations, requests, costs, SQL.

    The pages only read. Their address has a token, without which nothing is shown.
    """
    if not all(map(find_spec, NEEDED_LIBRARIES)):
        raise StoreError("pages need more libraries: install convostore[browse]")
    from ..pages import serve_pages

    def announce(address: str) -> None:
        render.print_lines(address)
        render.print_remark("Ctrl-C ends it")
        if show:
            webbrowser.open(address)

    with open_existing_store(ctx) as store:
        get_place(ctx).tell()
        serve_pages(store, host=host, port=port, owner=owner, announce=announce)
