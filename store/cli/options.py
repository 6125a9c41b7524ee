"""What commands share: their options as types, the store they open, and texts of a command line as values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ..clock import milliseconds
from ..errors import InvalidValue, SessionNotFound, StoreError
from ..policy import POLICIES, Policy, load
from ..records import Session
from ..store import Store

PAGE = 500
"""Sessions read at once."""

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="A session's id, or the beginning of just one.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
At = Annotated[
    int | None, typer.Option("--at", metavar="N", help="As of position N of the line.", show_default="the head")
]
Now = Annotated[
    str | None,
    typer.Option(
        "--now", metavar="TIME", help="The moment: ms since the epoch, or ISO with a zone.", show_default="now"
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        "--policy", metavar="POLICY", help=f"A ready policy ({', '.join(POLICIES)}), or a TOML file with one."
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Change a field of the policy, e.g. terminal_keep=3. Can be repeated."
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", metavar="N", min=0, help="The model's window in tokens.", show_default="the policy's"),
]


def target(ctx: typer.Context) -> str:
    """Return the path or URL of the store that the command is about."""
    return str(ctx.obj)


@contextmanager
def opened(ctx: typer.Context) -> Iterator[Store]:
    """Give the store, made where there is none."""
    with Store(target(ctx)) as store:
        yield store


@contextmanager
def existing(ctx: typer.Context) -> Iterator[Store]:
    """Give a store that is there already. Raises StoreError where its file is missing; no file is made."""
    require(target(ctx))
    with Store(target(ctx)) as store:
        yield store


def require(database: str) -> None:
    """Raise StoreError where a store is in a file and the file is missing."""
    path = _file(database)
    if path and not path.exists():
        raise StoreError(f"there is no store at {str(path)!r}; make one with `convostore import`, or name it with --db")


def find(store: Store, given: str) -> Session:
    """Return the session with an id, or the only one whose id begins so. Raises SessionNotFound, InvalidValue."""
    try:
        return store.session(given)
    except SessionNotFound:
        found = [session for session in every_session(store) if session.id.startswith(given)] if given else []
        if not found:
            raise
    if len(found) > 1:
        raise InvalidValue(
            f"{len(found)} sessions begin with {given!r}: {found[0].id}, {found[1].id}, …; write more of it"
        )
    return found[0]


def every_session(store: Store, limit: int | None = None) -> Iterator[Session]:
    """Yield sessions, the last active first."""
    page = store.sessions(limit=PAGE if limit is None else min(limit, PAGE))
    while page:
        yield from page
        limit = None if limit is None else limit - len(page)
        page = store.sessions(limit=PAGE if limit is None else min(limit, PAGE), after=page[-1].id)


def moment_of(text: str | None) -> int | None:
    """Return a moment in ms from ms or an ISO time with a zone. Raises InvalidValue."""
    if text is None:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidValue(f"--now is ms since the epoch or an ISO time with a zone (2025-03-14T10:00Z), not {text!r}")
    return milliseconds(moment)


def policy_of(name: str, changes: list[str] | None = None) -> Policy:
    """Return a ready policy, or that of a TOML file, with some fields changed. Raises InvalidPolicy, InvalidValue."""
    fields = dict(map(_field, changes or ()))
    if name in POLICIES or not _names_a_file(name):
        return Policy.named(name, **fields)
    return Policy(**{**dict(load(name)), **fields})


def _names_a_file(name: str) -> bool:
    return name.endswith(".toml") or "/" in name or Path(name).is_file()


def _field(change: str) -> tuple[str, Any]:
    """Return a field and its value: JSON where it reads as JSON, else text."""
    name, sign, text = change.partition("=")
    if not sign:
        raise InvalidValue(f"--set takes FIELD=VALUE, not {change!r}; the fields are {', '.join(Policy.model_fields)}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = {"True": True, "False": False, "None": None}.get(text, text)
    return name.strip(), tuple(value) if isinstance(value, list) else value


def _file(database: str) -> Path | None:
    """Return the file that a path or URL names, None for a server."""
    if "://" not in database:
        return Path(database).expanduser()
    scheme, _, path = database.partition(":///")
    return Path(path.partition("?")[0]) if scheme.startswith("sqlite") else None
