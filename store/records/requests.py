"""Requests that were sent to a model, as the log of requests has them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import quote_value
from .sessions import Usage
from .views import View


class RequestSummary(NamedTuple):
    """A request of a session, as `requests` lists it.

    ``number`` counts from 1. It held the line of ``branch`` up to the position ``seq``, by the
    policy named ``policy``, at the moment ``at`` (ms). ``tokens`` are those of the whole request,
    ``unchanged_tokens`` of them were as in the request before (None: not known). ``digest`` is the
    SHA-256 of the sent request, None where that is not ``recorded``. ``kind`` is ``context`` or
    ``view``. ``usage`` is the real cost, None before it is recorded.
    """

    number: int
    session_id: str
    branch: int
    seq: int
    at: int
    kind: str
    policy: str
    format: str
    tokens: int
    unchanged_tokens: int | None
    digest: bytes | None
    usage: Usage | None
    recorded: bool


class Request(NamedTuple):
    """A request that was sent, made again.

    ``messages``, ``system`` and ``tools`` are those that were sent, byte for byte, or ``missing``
    names the missing parts. ``policy`` are the fields of the policy, ``layers`` the tokens of
    each layer; ``view`` explains each message of the line. ``compactions`` are the numbers of those
    that were in force, ``release`` is the release that made the request. Everything else is as in
    a `RequestSummary`.
    """

    number: int
    session_id: str
    branch: int
    seq: int
    at: int
    kind: str
    policy: dict[str, Any]
    format: str
    tokens: int
    unchanged_tokens: int | None
    digest: bytes | None
    messages: list[Any]
    system: str | list[Any] | None
    tools: list[Any] | None
    layers: dict[str, int]
    usage: Usage | None
    recorded: bool
    missing: tuple[str, ...]
    compactions: tuple[int, ...]
    release: str | None
    view: View | None

    def __repr__(self) -> str:
        """Return the request in one line."""
        session_id, count = quote_value(self.session_id), len(self.messages)
        return f"Request({self.number} of {session_id}, {count:,} messages at {self.seq})"
