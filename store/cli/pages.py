"""Commands for a browser: browse, and datasette, which helps another program to do so."""

from __future__ import annotations

import json
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ..errors import StoreError
from ..inspection import views
from . import render
from .options import OwnerFilter, get_place, require_new

NEEDED_LIBRARIES = ("jinja2", "starlette", "uvicorn")

PageHost = Annotated[
    str, typer.Option("--host", metavar="NAME", help="The name or address to listen at.")
]
PagePort = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65_535, help="The port; 0 is a free one.")
]
MetadataFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The file.", show_default="standard output"
    ),
]
ReplaceFile = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
OpenBrowser = Annotated[bool, typer.Option("--open", help="Open the pages in a browser.")]


def browse(
    ctx: typer.Context,
    port: PagePort = 8765,
    host: PageHost = "127.0.0.1",
    owner: OwnerFilter = None,
    show: OpenBrowser = False,
) -> None:
    """Show the store in a browser: conversations, requests, costs.

    The pages only read. Their address has a token, without which nothing is shown.
    """
    _require_libraries()
    from ..pages import serve_pages

    def announce(address: str) -> None:
        render.print_lines(address)
        sys.stdout.flush()  # a pipe has it at once, too
        render.print_remark("Ctrl-C ends it")
        if show:
            webbrowser.open(address)

    from .. import Store

    place = get_place(ctx)
    place.require()
    place.tell()
    with Store(place.target, read_only=True) as store:
        serve_pages(store, host=host, port=port, owner=owner, announce=announce)


def datasette(
    ctx: typer.Context,
    output: MetadataFile = None,
    force: ReplaceFile = False,
) -> None:
    """Write metadata for Datasette: views, columns, ready queries.

    Then `datasette chat.db --metadata FILE` shows them.
    """
    _require_libraries()
    from ..pages import build_datasette_metadata

    place = get_place(ctx)
    place.require()
    if place.file is None:
        raise StoreError("Datasette shows files, not servers")
    metadata = build_datasette_metadata(place.file.stem, views(place.target))
    text = json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
    if output is None:
        render.print_lines(text.rstrip("\n"))
        return
    require_new(output, replace=force)
    output.write_text(text, encoding="utf-8")
    render.print_remark(f"datasette {place.file} --metadata {output}")


def _require_libraries() -> None:
    """Raise StoreError if a library of pages is not installed."""
    if not all(map(find_spec, NEEDED_LIBRARIES)):
        raise StoreError("pages need more libraries: install convostore[browse]")
