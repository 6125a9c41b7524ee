"""The server of the pages: the app, and the process that runs it."""

from __future__ import annotations

import gc
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from .. import AsyncStore, Store, StoreError
from ..html import load_style_sheet
from . import conversation, costs, files, policies, requests, sessions, sql, tree
from .access import TOKEN, Access
from .live import answer_live
from .page_rendering import FOLDER, PAGES, Site, Visit, choose_language, render_problem

LOOPBACK = "127.0.0.1"
COLLECTION_THRESHOLDS = (50_000, 50, 100)
"""New objects, and runs, before the garbage collector looks at more: at all messages at last."""
SHOWN = (sessions, conversation, requests, tree, policies, costs, files, sql)
"""The modules of the pages, which enter them in the table of pages."""


def build_app(
    store: Store, *, token: str, host: str = LOOPBACK, owner: str | None = None
) -> ASGIApp:
    """Return the pages of a store as an ASGI app, for the holder of a token.

    ``host`` is the name that it is reached by, besides addresses and ``localhost``. ``owner``
    shows the sessions of one owner only, and no SQL. Raises InvalidValue for an invalid owner.
    """
    awaited = AsyncStore(store)
    if owner is None:
        site = Site(store, store, awaited, store.database.url, owner)
    else:
        site = Site(store, store.scoped(owner), awaited.scoped(owner), None, owner)
    live = Route("/live/{session_id:path}", answer_live)
    style = Route("/style.css", send_style)
    files = Mount("/static", StaticFiles(directory=FOLDER / "static"))
    pages = Starlette(
        routes=[*PAGES, live, style, files], exception_handlers={404: answer_unknown_address}
    )
    pages.state.site = site
    return Access(pages, token, host)


async def answer_unknown_address(request: Request, _: Exception) -> Response:
    """Return the page that tells that there is none at an address."""
    visit = Visit(request, request.app.state.site, choose_language(request))
    return render_problem(visit, visit.say("no_page"), 404)


async def send_style(_: Request) -> Response:
    """Return the style sheet of messages."""
    return Response(load_style_sheet(), media_type="text/css")


def serve_pages(
    store: Store,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    owner: str | None = None,
    announce: Callable[[str], object] = print,
) -> None:
    """Serve the pages of a store until the process is told to end.

    ``announce`` gets the address, with its token, once the port is taken (0: a free one). Raises
    StoreError if it cannot be taken.
    """
    token = secrets.token_urlsafe(24)
    app = build_app(store, token=token, host=host, owner=owner)
    settings = uvicorn.Config(
        app, ws="none", access_log=False, server_header=False, log_level="warning"
    )
    with open_socket(host, port) as listening, defer_gc():
        name = f"[{host}]" if ":" in host else host
        announce(f"http://{name}:{listening.getsockname()[1]}/?{TOKEN}={token}")
        uvicorn.Server(settings).run(sockets=[listening])


@contextmanager
def defer_gc() -> Iterator[None]:
    """Let no page wait for the garbage collector to look at what the process keeps."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address. Raises StoreError."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as problem:
        raise StoreError(
            f"nothing can listen at {host}, port {port}: {problem.strerror}; name another --port"
        ) from problem
