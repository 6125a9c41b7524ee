"""Shared parts of commands: the choice and opening of the store, options, and their values.

The first of these is the store: the one that ``--db`` names; the one that $CONVOSTORE_DB names; a
file ``convostore.db`` in the current folder, if it exists; the user's own store. Only the last is a
guess that may surprise, so every command without ``--db`` names its store on standard error.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from platformdirs import user_data_path

from ..clock import EPOCH, parse_day, resolve_now
from ..errors import InvalidValue, SessionNotFound, StoreError
from ..policy import POLICIES
from ..text import hide_password
from . import render
from .render import print_problem
from .terminal import CUT_MARK

if TYPE_CHECKING:
    from .. import Store
    from ..policy import Policy
    from ..records import Session

STORE_FILE = "convostore.db"
STORE_VARIABLE = "CONVOSTORE_DB"

SESSIONS_PER_PAGE = 500
"""Sessions read at once."""

IDS_BY_PREFIX = "SELECT id FROM session_ids WHERE substr(id, 1, length(?)) = ? ORDER BY id"
"""Ids that begin so, for the console: pressing a key brings no store to a newer schema."""

PYTHON_WORDS = {"True": True, "False": False, "None": None}
"""Values that people write as in Python, with other words than in JSON."""


class StorePlace(NamedTuple):
    """The path or URL of a store, and whether the command line named it."""

    target: str
    named: bool = True

    @property
    def file(self) -> Path | None:
        """Return the file that the store is in, None for a server."""
        if "://" not in self.target:
            return Path(self.target).expanduser()
        scheme, _, path = self.target.partition(":///")
        return Path(path.partition("?")[0]) if scheme.startswith("sqlite") else None

    @property
    def guessed(self) -> str:
        """Return the name of a store that the command line did not name, otherwise ""."""
        return "" if self.named else f"store: {hide_password(self.target)}"

    def tell(self) -> None:
        """Name the store on standard error, unless the command line named it."""
        if self.guessed:
            render.print_remark(self.guessed)

    @property
    def exists(self) -> bool:
        """Tell whether the store's file is there; of a server nothing is known."""
        return self.file is None or self.file.exists()

    def require(self) -> None:
        """Raise StoreError if the store is in a file and the file is missing."""
        if self.exists:
            return
        here = f"{STORE_FILE!r} here, nor at " if self.target == str(locate_own_store()) else ""
        raise StoreError(
            f"there is no store at {here}{hide_password(str(self.file))!r};"
            " create one with `convostore import` or `create`, or name it with --db"
        )

    def make_room(self) -> None:
        """Create the folder of a user's own store, readable by nobody else."""
        if self.target == str(locate_own_store()):
            locate_own_store().parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def choose_place(db: str | None) -> StorePlace:
    """Return the store of a command from the value of ``--db``."""
    if db is not None:
        return StorePlace(db)
    return StorePlace(
        os.environ.get(STORE_VARIABLE)
        or (STORE_FILE if Path(STORE_FILE).exists() else str(locate_own_store())),
        named=False,
    )


def locate_own_store() -> Path:
    """Return the path of a user's own store."""
    return user_data_path("convostore", appauthor=False) / STORE_FILE


def complete_session(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the sessions whose ids begin so, for a shell; none if there is no store."""
    from ..inspection import query

    place = choose_place(ctx.find_root().params.get("db"))
    if place.file is None or not place.exists:
        return []
    try:
        found = query(place.target, IDS_BY_PREFIX, parameters=(incomplete, incomplete))
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
        help="A session's id, or a unique beginning of it.",
        autocompletion=complete_session,
    ),
]
OptionalSession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session's id, or a unique beginning of it.",
        autocompletion=complete_session,
        show_default=False,
    ),
]
SessionOrStore = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session.",
        show_default="the whole store",
        autocompletion=complete_session,
    ),
]
OwnerFilter = Annotated[
    str | None,
    typer.Option(
        "--owner", metavar="TEXT", help="Only sessions of this owner.", show_default="all"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
LinePosition = Annotated[
    int | None,
    typer.Option(
        "--at", metavar="N", help="As of position N of the line.", show_default="the head"
    ),
]
MomentText = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="TIME",
        help="The present time: ms since the epoch, or ISO with a zone.",
        show_default="now",
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help=f"A ready policy ({', '.join(POLICIES)}), or a TOML file with one; `agent` is for"
        " coding agents.",
        autocompletion=complete_policy,
    ),
]
FieldChanges = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Change a field of the policy, e.g. terminal_keep=3. Can be repeated.",
        autocompletion=complete_field,
    ),
]


class ProviderFormat(StrEnum):
    """The formats that providers take, and give."""

    openai = "openai"
    responses = "responses"
    anthropic = "anthropic"
    gemini = "gemini"


InputFormat = Annotated[
    ProviderFormat | None,
    typer.Option(
        "--format", help="The format of the messages.", show_default="told by their shape"
    ),
]
ViewFormat = Annotated[
    ProviderFormat, typer.Option("--format", help="The API that the messages are written for.")
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


def get_place(ctx: typer.Context) -> StorePlace:
    """Return the place of the command's store."""
    assert isinstance(ctx.obj, StorePlace)
    return ctx.obj


def announce_store(ctx: typer.Context) -> None:
    """Name the store, unless the answer is for a program."""
    if not ctx.params.get("json") and ctx.params.get("format") != "json":
        get_place(ctx).tell()


@contextmanager
def open_store(ctx: typer.Context, *, read_only: bool = False) -> Iterator[Store]:
    """Open the store, create it if missing, and name it, even after an error."""
    from .. import Store
    from ..inspection import is_write_protected

    if not read_only:
        get_place(ctx).make_room()
    try:
        target = get_place(ctx).target
        with Store(target, read_only=read_only or is_write_protected(target)) as store:
            if store.upgraded.told:
                print_problem(store.upgraded.told)
            yield store
    except StoreError as error:
        error.add_note(get_place(ctx).guessed)
        raise
    announce_store(ctx)


@contextmanager
def open_existing_store(ctx: typer.Context, *, read_only: bool = False) -> Iterator[Store]:
    """Open an existing store, and name it.

    Raises StoreError if its file is missing; no file is created.
    """
    get_place(ctx).require()
    with open_store(ctx, read_only=read_only) as store:
        yield store


def fill_titles(store: Store, found: Iterable[Session]) -> list[Session]:
    """Return sessions with their displayed titles."""
    return [each._replace(title=_load_title(store, each)) for each in found]


def _load_title(store: Store, session: Session) -> str | None:
    if session.title is not None:
        return session.title
    with suppress(SessionNotFound):  # erased meanwhile
        return store.title(session.id)
    return None


MOST_CANDIDATES = 5
"""Sessions that are named if a beginning may mean several."""


def find_session(store: Store, given: str) -> Session:
    """Return the session with an id, or the only one whose id begins so.

    Raises SessionNotFound, InvalidValue.
    """
    try:
        return store.session(given)
    except SessionNotFound:
        beginning, _, ending = given.partition(CUT_MARK)
        found = list(list_sessions_by_prefix(store, beginning)) if beginning else []
        found = [each for each in found if each.id.endswith(ending)]
        if not found:
            raise
    if len(found) > 1:
        raise InvalidValue(
            f"{len(found)} sessions begin with {beginning!r}"
            f"{f' and end with {ending!r}' if ending else ''}: {_join_first_ids(found)}; "
            "write more of it"
        )
    return found[0]


SHORT_ID_LENGTH = 8
"""Code points of a short id, at least."""
LONGEST_BEGINNING = 12
"""Those of a beginning; of ids that are alike for longer, a short id has the end, too."""
SHORTEST_ENDING = 3
"""Code points of such an end, at least."""


def shorten_id(store: Store, session_id: str) -> str:
    """Return the shortest beginning of an id that no other session has.

    Of ids that begin alike, as those of subagents do, it returns the beginning and the end if that
    is shorter.
    """
    for length in range(SHORT_ID_LENGTH, min(LONGEST_BEGINNING + 1, len(session_id))):
        beginning = session_id[:length]
        counts = (store.count_sessions(prefix=beginning, archived=each) for each in (False, True))
        if sum(counts) <= 1:
            return beginning
    beginning = session_id[:SHORT_ID_LENGTH]
    others = {each.id for each in list_sessions_by_prefix(store, beginning)} - {session_id}
    beginnings = (session_id[:length] for length in range(LONGEST_BEGINNING, len(session_id)))
    unique = (each for each in beginnings if not any(other.startswith(each) for other in others))
    short = next(unique, session_id)
    for length in range(SHORTEST_ENDING, len(session_id) - SHORT_ID_LENGTH):
        if not any(each.endswith(session_id[-length:]) for each in others):
            return min(short, f"{beginning}{CUT_MARK}{session_id[-length:]}", key=len)
    return short


def _join_first_ids(sessions: list[Session]) -> str:
    """Return the first ids of several sessions, and a mark if there are more."""
    names = [session.id for session in sessions[:MOST_CANDIDATES]]
    if len(sessions) > MOST_CANDIDATES:
        names.append(CUT_MARK)
    return ", ".join(names)


def list_sessions_by_prefix(store: Store, beginning: str) -> Iterator[Session]:
    """Yield the sessions whose ids begin so."""
    return list_every_session(store, prefix=beginning)


def list_every_session(store: Store, prefix: str | None = None) -> Iterator[Session]:
    """Yield sessions, the last active first, and after them the archived ones."""
    for archived in (False, True):
        yield from page_sessions(store, prefix=prefix, archived=archived)


def page_sessions(store: Store, limit: int | None = None, **chosen: Any) -> Iterator[Session]:
    """Yield sessions as `Store.sessions` chooses them, page by page."""
    last = None
    while page := store.sessions(
        limit=SESSIONS_PER_PAGE if limit is None else min(limit, SESSIONS_PER_PAGE),
        after=last,
        **chosen,
    ):
        yield from page
        last = page[-1]
        if limit is not None:
            limit -= len(page)


def is_foreign_folder(folder: str | None) -> bool:
    """Tell whether a text is no path of this machine: none at all, or one of Windows elsewhere."""
    return not folder or (os.name != "nt" and bool(PureWindowsPath(folder).drive))


def resolve_folder(folder: str | None) -> str | None:
    """Return a folder of this machine as a whole path, links in it kept, and any other as given."""
    if folder is None or is_foreign_folder(folder):
        return folder
    return os.path.abspath(Path(folder).expanduser())  # noqa: PTH100


def require_new(file: Path | None, *, replace: bool) -> None:
    """Raise StoreError if a file to write exists, unless it may be replaced."""
    if file is not None and file.exists() and not replace:
        raise StoreError(f"{str(file)!r} exists already; --force replaces it")


def require_consent(question: str, *, yes: bool, aim: str, refusal: str) -> None:
    """Ask a question on the terminal, unless its answer was given. Raises StoreError.

    ``aim`` is what the option does where there is no terminal, ``refusal`` what no means.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise StoreError(f"there is no terminal to ask on; use --yes to {aim}")
    if not typer.confirm(question, err=True):
        raise StoreError(refusal)


def parse_moment_option(text: str | None, option: str = "--now") -> int | None:
    """Return a moment in ms from ms or an ISO time with a zone. Raises InvalidValue."""
    if text is None:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    moment = _parse_iso_moment(text) or _parse_day(text)
    if moment is None:
        raise InvalidValue(
            f"{option} must be ms since the epoch, an ISO time with a zone (2025-03-14T10:00Z), a"
            f" date, an age such as 7d, today, yesterday or monday, not {text!r}"
        )
    return resolve_now(moment)


def parse_age(text: str | None, option: str) -> timedelta | None:
    """Return the time that an age such as ``90d`` names. Raises InvalidValue."""
    if text is None:
        return None
    age = _AGE.fullmatch(text)
    if age is None:
        raise InvalidValue(f"{option} must be an age such as 12h, 90d or 8w, not {text!r}")
    with suppress(OverflowError):
        return timedelta(**{_AGE_UNITS[age[2]]: int(age[1])})
    return timedelta.max


def _parse_iso_moment(text: str) -> datetime | None:
    """Return the moment of an ISO time with a zone, or the beginning of a date here.

    None for any other text.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone() if moment.tzinfo or _DATE.fullmatch(text) else None


def _parse_day(text: str) -> datetime | None:
    """Return the moment an age ago (``7d``), or the beginning of a named day here."""
    now = datetime.now().astimezone()
    if age := _AGE.fullmatch(text):
        with suppress(OverflowError):
            return now - timedelta(**{_AGE_UNITS[age[2]]: int(age[1])})
    if not text.isalpha():
        return None
    with suppress(InvalidValue):
        return EPOCH + timedelta(milliseconds=parse_day(text, now.date()).first)
    return None


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_AGE = re.compile(r"(\d{1,9})([mhdw])")
_AGE_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def render_undo_hint(session_id: str, compaction: int | None = None) -> str:
    """Return the command line that undoes a session's compaction, or its last move (None)."""
    which = "" if compaction is None else f" --compaction {compaction}"
    return f"`convostore undo {session_id}{which}` takes it back"


def resolve_policy(name: str, changes: list[str] | None = None) -> Policy:
    """Return a ready policy, or that of a TOML file, with some fields changed.

    Raises InvalidPolicy, InvalidValue.
    """
    from ..policy import Policy

    fields = dict(map(_parse_field_change, changes or ()))
    if name in POLICIES or not (name.endswith(".toml") or "/" in name or Path(name).is_file()):
        return Policy.named(name, **fields)
    return Policy(**{**dict(read_policy_file(name)), **fields})


def read_policy_file(file: str) -> Policy:
    """Return the policy of a TOML file. Raises StoreError, InvalidPolicy."""
    from ..policy import load

    if not Path(file).exists():
        raise StoreError(
            f"there is no file {file!r}; `convostore policy list` lists ready policies"
        )
    return load(file)


def _parse_field_change(change: str) -> tuple[str, Any]:
    """Return the field and the value of FIELD=VALUE. Raises InvalidValue."""
    name, sign, text = change.partition("=")
    if not sign:
        from ..policy import Policy

        fields = ", ".join(Policy.model_fields)
        raise InvalidValue(f"--set takes FIELD=VALUE, not {change!r}; the fields are {fields}")
    return name.strip(), _parse_field_value(text)


def _parse_field_value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself if it is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return PYTHON_WORDS.get(text, text)
    return tuple(value) if isinstance(value, list) else value


def parse_tag(given: str) -> tuple[str, Any]:
    """Return the key and the value of KEY=VALUE; a value that is no JSON is a text."""
    key, sign, text = given.partition("=")
    if not sign or not key.strip():
        raise InvalidValue(f"a tag is KEY=VALUE, such as project=parcel, not {given!r}")
    try:
        return key.strip(), json.loads(text)
    except ValueError:
        return key.strip(), text
