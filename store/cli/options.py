"""Shared parts of commands.

These are options as types, the opening of the store, and the values of command-line texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..clock import milliseconds
from ..errors import InvalidValue, SessionNotFound, StoreError
from ..ready import POLICIES
from .place import Place, place_of
from .render import complain
from .shown import CUT

if TYPE_CHECKING:  # sessions are listed without a policy, and a policy is shown without a store
    from ..face import Store
    from ..policy import Policy
    from ..records import Session

PAGE = 500
"""Sessions read at once."""

IDS = "SELECT id FROM session_ids WHERE substr(id, 1, length(?)) = ? ORDER BY id"
"""Ids that begin so, for the console: pressing a key brings no store to a newer schema."""

PYTHON_WORDS = {"True": True, "False": False, "None": None}
"""Values that people write as in Python, with other words than in JSON."""


def complete_session(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the sessions whose ids begin so, for a shell; none if there is no store."""
    from ..inspection import query

    place = place_of(ctx.find_root().params.get("db"))
    if place.file is None or not place.exists:
        return []
    try:
        found = query(place.target, IDS, parameters=(incomplete, incomplete))
    except StoreError:
        return []
    return [session_id for session_id, *_ in found.rows]


def complete_policy(incomplete: str) -> list[str]:
    """Return the ready policies whose names begin so, for a shell."""
    return [name for name in POLICIES if name.startswith(incomplete)]


def complete_field(incomplete: str) -> list[str]:
    """Return the fields of a policy that begin so, for a shell."""
    from ..policy import Policy

    return [f"{name}=" for name in Policy.model_fields if name.startswith(incomplete)]


SessionId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="A session's id, or the beginning of just one.",
        autocompletion=complete_session,
    ),
]
MaybeSession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session's id, or the beginning of just one.",
        autocompletion=complete_session,
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
At = Annotated[
    int | None,
    typer.Option(
        "--at", metavar="N", help="As of position N of the line.", show_default="the head"
    ),
]
Now = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="TIME",
        help="The moment: ms since the epoch, or ISO with a zone.",
        show_default="now",
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help=f"A ready policy ({', '.join(POLICIES)}), or a TOML file with one; "
        "a coding agent had better use `agent`.",
        autocompletion=complete_policy,
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Change a field of the policy, e.g. terminal_keep=3. Can be repeated.",
        autocompletion=complete_field,
    ),
]


class Provider(StrEnum):
    """The formats that providers take, and give."""

    openai = "openai"
    responses = "responses"
    anthropic = "anthropic"
    gemini = "gemini"


GivenFormat = Annotated[
    Provider | None,
    typer.Option(
        "--format", help="The format of the messages.", show_default="told by their shape"
    ),
]
ViewFormat = Annotated[
    Provider, typer.Option("--format", help="The API that the messages are written for.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        metavar="N",
        min=0,
        help="The model's window in tokens.",
        show_default="the policy's",
    ),
]


def place(ctx: typer.Context) -> Place:
    """Return the place of the command's store."""
    assert isinstance(ctx.obj, Place)
    return ctx.obj


def tell(ctx: typer.Context) -> None:
    """Name the store, unless the answer is for a program."""
    if not ctx.params.get("json") and ctx.params.get("format") != "json":
        place(ctx).tell()


@contextmanager
def opened(ctx: typer.Context) -> Iterator[Store]:
    """Open the store, create it if missing, and name it, even after an error."""
    from ..face import Store

    place(ctx).make_room()
    try:
        with Store(place(ctx).target) as store:
            if store.upgraded.told:
                complain(store.upgraded.told)
            yield store
    except StoreError as error:
        error.add_note(place(ctx).guessed)
        raise
    tell(ctx)


@contextmanager
def existing(ctx: typer.Context) -> Iterator[Store]:
    """Open an existing store, and name it.

    Raises StoreError if its file is missing; no file is created.
    """
    place(ctx).require()
    with opened(ctx) as store:
        yield store


def titled(store: Store, found: Iterable[Session]) -> list[Session]:
    """Return sessions with their displayed titles."""
    return [each._replace(title=_title(store, each)) for each in found]


def _title(store: Store, session: Session) -> str | None:
    if session.title is not None:
        return session.title
    with suppress(SessionNotFound):  # erased meanwhile
        return store.title(session.id)
    return None


def find(store: Store, given: str) -> Session:
    """Return the session with an id, or the only one whose id begins so.

    Raises SessionNotFound, InvalidValue.
    """
    try:
        return store.session(given)
    except SessionNotFound:
        beginning = given.removesuffix(CUT)
        found = list(beginning_with(store, beginning)) if beginning else []
        if not found:
            raise
    if len(found) > 1:
        raise InvalidValue(
            f"{len(found)} sessions begin with {beginning!r}: {_named(found)}; write more of it"
        )
    return found[0]


def _named(sessions: list[Session]) -> str:
    """Return the first two ids of several sessions, and a mark if there are more."""
    names = [session.id for session in sessions[:2]]
    if len(sessions) > 2:
        names.append(CUT)
    return ", ".join(names)


def beginning_with(store: Store, beginning: str) -> Iterator[Session]:
    """Yield the sessions whose ids begin so."""
    return every_session(store, prefix=beginning)


def every_session(store: Store, prefix: str | None = None) -> Iterator[Session]:
    """Yield sessions, the last active first, and after them the archived ones."""
    for archived in (False, True):
        yield from listed(store, prefix=prefix, archived=archived)


def listed(store: Store, limit: int | None = None, **chosen: Any) -> Iterator[Session]:
    """Yield sessions as `Store.sessions` chooses them, page by page."""
    last = None
    while page := store.sessions(
        limit=(PAGE if limit is None else min(limit, PAGE)), after=last, **chosen
    ):
        yield from page
        last = page[-1]
        if limit is not None:
            limit -= len(page)


def require_new(file: Path | None, *, replace: bool) -> None:
    """Raise StoreError if a file to write exists, unless it may be replaced."""
    if file is not None and file.exists() and not replace:
        raise StoreError(f"{str(file)!r} exists already; --force replaces it")


def moment_of(text: str | None, option: str = "--now") -> int | None:
    """Return a moment in ms from ms or an ISO time with a zone. Raises InvalidValue."""
    if text is None:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    moment = _iso_moment(text)
    if moment is None:
        raise InvalidValue(
            f"{option} is ms since the epoch or an ISO time with a zone (2025-03-14T10:00Z),"
            f" not {text!r}"
        )
    return milliseconds(moment)


def _iso_moment(text: str) -> datetime | None:
    """Return the moment of an ISO time with a zone, None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment


def undoing(session_id: str, compaction: int | None = None) -> str:
    """Return the command line that undoes a session's compaction, or its last move (None)."""
    which = "" if compaction is None else f" --compaction {compaction}"
    return f"`convostore undo {session_id}{which}` takes it back"


def policy_of(name: str, changes: list[str] | None = None) -> Policy:
    """Return a ready policy, or that of a TOML file, with some fields changed.

    Raises InvalidPolicy, InvalidValue.
    """
    from ..policy import Policy

    fields = dict(map(_field, changes or ()))
    if name in POLICIES or not (name.endswith(".toml") or "/" in name or Path(name).is_file()):
        return Policy.named(name, **fields)
    return Policy(**{**dict(loaded(name)), **fields})


def loaded(file: str) -> Policy:
    """Return the policy of a TOML file. Raises StoreError, InvalidPolicy."""
    from ..policy import load

    if not Path(file).exists():
        raise StoreError(
            f"there is no file {file!r}; `convostore policy list` lists ready policies"
        )
    return load(file)


def _field(change: str) -> tuple[str, Any]:
    """Return the field and the value of FIELD=VALUE. Raises InvalidValue."""
    name, sign, text = change.partition("=")
    if not sign:
        from ..policy import Policy

        fields = ", ".join(Policy.model_fields)
        raise InvalidValue(f"--set takes FIELD=VALUE, not {change!r}; the fields are {fields}")
    return name.strip(), _value(text)


def _value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself if it is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return PYTHON_WORDS.get(text, text)
    return tuple(value) if isinstance(value, list) else value


def tag_of(given: str) -> tuple[str, Any]:
    """Return the key and the value of KEY=VALUE; a value that is no JSON is a text."""
    key, sign, text = given.partition("=")
    if not sign or not key.strip():
        raise InvalidValue(f"a tag is KEY=VALUE, such as project=parcel, not {given!r}")
    try:
        return key.strip(), json.loads(text)
    except ValueError:
        return key.strip(), text
