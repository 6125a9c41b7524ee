"""Who may ask for a page: the browser that was given the token, under a name of this machine.

The token stands in the first address, and a cookie takes its place. Other sites can neither read
pages nor have anything done: only GET and HEAD are answered, the cookie is sent by these pages
alone, and a name that a stranger points at this machine is no name of it. Each answer forbids the
browser to run or load anything but the files of this room, so that a text that is shown as text by
mistake does nothing.
"""

from __future__ import annotations

import ipaddress
import re
import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD")
TOKEN = "token"  # noqa: S105 - the name of a parameter
HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)
"""A name or an address, and a port."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""What each answer says, refusals included."""
NO_ACCESS = "This page needs the address that `convostore browse` printed, with its token.\n"


class Access:
    """An app that lets the holder of a token through to the pages.

    ``host`` is the name that the server listens at, besides addresses and ``localhost``.
    """

    def __init__(self, pages: ASGIApp, token: str, host: str) -> None:
        self._pages, self._token, self._host = pages, token, host
        self._key = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; nothing but requests and the server's own beginning and end is."""
        if scope["type"] == "lifespan":
            await self._pages(scope, receive, send)
        if scope["type"] != "http":
            return
        answer = self._refuse(Request(scope)) or self._admit(Request(scope)) or self._pages

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
            await send(message)

        await answer(scope, receive, send_safely)

    def _refuse(self, request: Request) -> Response | None:
        """Return the refusal of a request that no page of ours makes."""
        if request.method not in METHODS:
            allowed = {"allow": ", ".join(METHODS)}
            return PlainTextResponse("These pages only read.\n", 405, allowed)
        host = request.headers.get("host", "")
        named = HOST.fullmatch(host)
        if not named or not self._is_own_name(named[1].strip("[]")):
            return PlainTextResponse("This server has another name.\n", 421)
        origin = request.headers.get("origin")
        if origin is not None and origin != f"{request.url.scheme}://{host}":
            return PlainTextResponse("These pages answer no other site.\n", 403)
        return None

    def _admit(self, request: Request) -> Response | None:
        """Return None for the holder of the cookie, a cookie for that of the token."""
        cookie = f"convostore-{request.url.port or request.url.scheme}"
        token = request.query_params.get(TOKEN)
        if token is not None and secrets.compare_digest(token.encode(), self._token.encode()):
            place = request.url.remove_query_params(TOKEN)
            answer = RedirectResponse(place, 303)
            answer.set_cookie(cookie, self._key, httponly=True, samesite="strict")
            return answer
        held = request.cookies.get(cookie, "")
        if token is None and secrets.compare_digest(held.encode(), self._key.encode()):
            return None
        return PlainTextResponse(NO_ACCESS, 403)

    def _is_own_name(self, name: str) -> bool:
        """Tell whether a name is ours: an address cannot be pointed elsewhere by a stranger."""
        if name in ("localhost", self._host):
            return True
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return False
