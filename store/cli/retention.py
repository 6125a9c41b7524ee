"""Commands about the room that a store takes: size, prune."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from ..errors import InvalidValue
from ..inspection import SIZE_KEYS
from ..records import Pruned
from ..text import format_count
from . import render
from .options import Json, get_place, open_existing_store, parse_age, parse_tag
from .terminal import Column

BYTE_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
"""The units of sizes; a size without one is in bytes."""
_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]?B|)", re.IGNORECASE)
PART_COLUMNS = (
    Column("name", wide=True),
    Column("bytes", number=True),
    Column("messages", number=True),
)
NO_NAME = "(none)"
PRUNE_ADVICE = "the same command erases the others"

OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="AGE",
        help="Sessions without activity for so long, such as 90d.",
        show_default=False,
    ),
]
KeepTags = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", metavar="KEY=VALUE", help="Sessions with this tag stay.", show_default=False
    ),
]
PrunedOwner = Annotated[
    str | None, typer.Option("--owner", metavar="TEXT", help="Only an owner's sessions.")
]
PrunedSource = Annotated[
    str | None,
    typer.Option("--source", metavar="PROGRAM", help="Only sessions imported from a program."),
]
MaxSize = Annotated[
    str | None,
    typer.Option(
        "--max-size",
        metavar="SIZE",
        help="The oldest, until the store has this size, such as 2GB.",
        show_default=False,
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        metavar="SECONDS",
        min=0,
        help="Leave the rest to the next time after so long.",
        show_default="no limit",
    ),
]
PruneConsent = Annotated[
    bool, typer.Option("--yes", "-y", help="Erase them; without it only tell what would go.")
]
SizeKey = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="KEY",
        help=f"What the parts are: {', '.join(SIZE_KEYS)}.",
        autocompletion=lambda: list(SIZE_KEYS),
    ),
]


def prune(
    ctx: typer.Context,
    older_than: OlderThan = None,
    keep: KeepTags = None,
    owner: PrunedOwner = None,
    source: PrunedSource = None,
    max_size: MaxSize = None,
    max_seconds: MaxSeconds = None,
    yes: PruneConsent = False,
    json: Json = False,
) -> None:
    """Erase sessions that were idle for long, or tell what would go.

    Messages that sessions which stay show are kept.
    """
    if older_than is None and max_size is None:
        raise InvalidValue("prune takes --older-than AGE, --max-size SIZE, or both")
    drawn = render.show_progress("erasing", "sessions", PRUNE_ADVICE)
    with open_existing_store(ctx) as store, drawn as tell:
        done = store.prune(
            parse_age(older_than, "--older-than"),
            keep=dict(map(parse_tag, keep or ())),
            owner=owner,
            source=source,
            max_bytes=_parse_size(max_size),
            max_seconds=max_seconds,
            progress=tell,
            dry_run=not yes,
        )
    render.print_answer(done._asdict(), _describe_prune(done, erased=yes), json=json)
    if done.sessions and not yes:
        render.print_remark("nothing was erased; --yes erases them")


def _describe_prune(done: Pruned, *, erased: bool) -> str:
    """Return the effect of a prune in a line."""
    if not done.sessions:
        return "there is no session to erase"
    sessions, messages = (
        format_count(done.sessions, "session"),
        format_count(done.messages, "message"),
    )
    said = f"{sessions}, {messages}, {done.bytes:,} bytes of words"
    if done.oldest is not None and done.newest is not None:
        said += (
            f", last active {render.format_moment(done.oldest)} to"
            f" {render.format_moment(done.newest)}"
        )
    if done.kept_for_forks:
        said += f"; {format_count(done.kept_for_forks, 'message')} stay for forks"
    return f"erased: {said}" if erased else f"would be erased: {said}"


def _parse_size(given: str | None) -> int | None:
    """Return a number of bytes. Raises InvalidValue."""
    if given is None:
        return None
    size = _SIZE.fullmatch(given.strip())
    if size is None:
        raise InvalidValue(f"--max-size must be a size such as 500MB or 2GB, not {given!r}")
    return int(size[1]) * BYTE_UNITS[size[2].upper()]


def size(ctx: typer.Context, by: SizeKey = "table", json: Json = False) -> None:
    """Show the bytes that a store takes, and the largest parts of it."""
    with open_existing_store(ctx) as store:
        found = store.size(by)
    if json:
        parts = [each._asdict() for each in found.parts]
        render.print_json({**found._asdict(), "parts": parts})
        return
    render.print_lines(
        f"{found.used:,} bytes are used, {found.search:,} of them by the search index"
    )
    if get_place(ctx).file:  # a server keeps these to itself
        render.print_lines(
            f"{found.free:,} bytes are free: `convostore purge` gives them back",
            f"{found.log:,} bytes of log, {found.copies:,} bytes of copies",
        )
    render.show_table(
        PART_COLUMNS, [(each.name or NO_NAME, each.bytes, each.messages) for each in found.parts]
    )
