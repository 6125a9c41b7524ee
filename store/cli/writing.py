"""Commands that write by hand: create, append, rename, tag, archive; tree, what continues what."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ..errors import InvalidValue
from ..messages import Message
from ..records import Session
from ..text import format_count
from . import render
from .options import GivenFormat, Json, SessionId, every_session, existing, find, opened, tag_of

SPEAKERS = ("system", "developer", "user", "assistant")
"""Roles of messages that are just a text; a tool's result needs its call's id, too."""
SHORTEST_TITLE = 16
"""Code points of a title in a tree, however little room there is."""

LEFT_TO_IMPORT = (
    "whose the exported session is, and where its project, is left out; `import -` keeps it"
)

Forks = dict[str | None, list[Session]]
"""Sessions by the session that they continue; those that continue none under None."""

OwnId = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="The session's id.", show_default="a new UUID"),
]
OwnTitle = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="Its title.", show_default="none")
]
Root = Annotated[
    str | None,
    typer.Option(
        "--project-root",
        metavar="FOLDER",
        help="Where the files are that its tools read.",
        show_default="none",
    ),
]
Owner = Annotated[
    str | None,
    typer.Option("--owner", metavar="TEXT", help="Whose it is.", show_default="nobody's"),
]
Said = Annotated[
    str,
    typer.Argument(
        metavar="TEXT",
        help="What is said; - reads messages from standard input, as JSON.",
    ),
]
Role = Annotated[
    str,
    typer.Option(
        "--role",
        metavar="ROLE",
        help=f"Who says TEXT: {', '.join(SPEAKERS)}.",
        autocompletion=lambda: list(SPEAKERS),
    ),
]
Create = Annotated[
    bool, typer.Option("--create", help="Create the session where there is none of that id.")
]
Title = Annotated[str, typer.Argument(metavar="TITLE", help="The new title; '' for none.")]
Tags = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="What to set; KEY=null removes it. None: the tags are printed.",
        show_default=False,
    ),
]
OneTree = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION", help="The tree that it is in. None: all.", show_default=False
    ),
]


def create(
    ctx: typer.Context,
    id: OwnId = None,  # noqa: A002 - the option's name
    title: OwnTitle = None,
    project_root: Root = None,
    owner: Owner = None,
    json: Json = False,
) -> None:
    """Create a session without messages.

    It makes the store where there is none.
    """
    with opened(ctx) as store:
        made = store.create_session(id, title=title, project_root=project_root, owner=owner)
    render.answer(made._asdict(), f"{made.id} is there, without messages", json=json)


def append(
    ctx: typer.Context,
    session: SessionId,
    text: Said,
    role: Role = "user",
    create: Create = False,
    format: GivenFormat = None,  # noqa: A002 - the option's name
    json: Json = False,
) -> None:
    """Append a message, or all those that standard input holds.

    All are stored, or none.
    """
    given = _read() if text == "-" else [_message(role, text)]
    with opened(ctx) if create else existing(ctx) as store:
        found = session if create else find(store, session).id
        stored = store.append(found, given, create=create, format=format and format.value)
    positions = [each.seq for each in stored]
    messages = format_count(len(positions), "message")
    said = f"{found}: {messages}, the last at position {max(positions)}"
    render.answer({"session": found, "positions": positions}, said, json=json)


def rename(ctx: typer.Context, session: SessionId, title: Title, json: Json = False) -> None:
    """Give a session another title."""
    with existing(ctx) as store:
        named = store.rename_session(find(store, session).id, title or None)
    said = f"{named.id}: {named.title}" if named.title else f"{named.id} has no title"
    render.answer(named._asdict(), said, json=json)


def tag(
    ctx: typer.Context,
    session: SessionId,
    tags: Tags = None,
    json: Json = False,
) -> None:
    """Set some of a session's metadata, or print them.

    The session stays in its place in lists.
    """
    changes = dict(map(tag_of, tags or ()))
    with existing(ctx) as store:
        found = find(store, session)
        if changes:
            found = store.set_metadata(found.id, changes, merge=True)
    said = render.json_text(found.metadata)
    render.answer(found.metadata, f"{found.id}: {said}", json=json)


def archive(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """Take a session out of the list of those in use.

    Nothing of it is changed; `sessions --archived` lists it.
    """
    with existing(ctx) as store:
        found = store.archive(find(store, session).id)
    render.answer(found._asdict(), f"{found.id} is archived", json=json)


def unarchive(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """Put an archived session back among those in use."""
    with existing(ctx) as store:
        found = store.unarchive(find(store, session).id)
    render.answer(found._asdict(), f"{found.id} is in use", json=json)


def tree(ctx: typer.Context, session: OneTree = None, json: Json = False) -> None:
    """Draw which session continues which, and from where."""
    with existing(ctx) as store:
        wanted = find(store, session) if session else None
        everything = {each.id: each for each in every_session(store)}
    forks = _forks(everything)
    roots = forks.get(None, []) if wanted is None else [_root(wanted, everything)]
    found = list(_all(roots, forks))
    if json:
        render.print_json_list(each._asdict() for _, each in found)
    elif not found:
        render.say("no sessions; `convostore import` brings some in")
    else:
        room = render.room()
        render.say(*(_drawn(depth, each, room) for depth, each in found))


def _message(role: str, text: str) -> Message:
    """Return a message. Raises InvalidValue for an unknown role or an empty text."""
    if role not in SPEAKERS:
        raise InvalidValue(f"--role is one of {', '.join(SPEAKERS)}, not {role!r}")
    if not text:
        raise InvalidValue("TEXT is empty: there is nothing to append")
    return {"role": role, "content": text}


def _read() -> list[Message]:
    """Return the messages that standard input holds: one, a list, one a line, or an export."""
    text = sys.stdin.read()
    try:
        given = _messages_of(_values(text))
    except ValueError as problem:
        raise InvalidValue(f"standard input holds no JSON: {problem}") from None
    if not given:
        raise InvalidValue("standard input holds no message")
    return given


def _messages_of(given: list[Any]) -> list[Message]:
    """Return the given values without the row of an export about its session."""
    from ..transcripts import spoken, stands_before

    if given and stands_before(given[0]):
        render.remark(LEFT_TO_IMPORT)
        given = given[1:]
    return [spoken(each) for each in given]


def _values(text: str) -> list[Any]:
    try:
        whole = json_format.loads(text)
    except ValueError:
        return [json_format.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def _forks(everything: dict[str, Session]) -> Forks:
    """Return sessions by the session that they continue, which may be gone."""
    forks: Forks = {}
    for each in everything.values():
        source = each.forked_from if each.forked_from in everything else None
        forks.setdefault(source, []).append(each)
    return forks


def _root(session: Session, everything: dict[str, Session]) -> Session:
    """Return the first existing session of a session's tree."""
    while session.forked_from in everything:
        session = everything[session.forked_from]
    return session


def _all(roots: list[Session], forks: Forks) -> Iterator[tuple[int, Session]]:
    """Yield sessions with their depth in the tree, each before those that continue it."""
    left = [(0, root) for root in reversed(roots)]
    while left:
        depth, session = left.pop()
        yield depth, session
        behind = reversed(forks.get(session.id, []))
        left.extend((depth + 1, each) for each in behind)


def _drawn(depth: int, session: Session, room: int) -> str:
    """Return a session in a line, its title cut to the remaining room, with a minimum length."""
    branch = "  " * (depth - 1) + "└ " if depth else ""
    origin = f" from {session.forked_at}" if session.forked_from else ""
    line = f"{branch}{session.id}{origin}, {format_count(session.head, 'message')}"
    if not session.title:
        return line
    left = max(room - len(line) - len(": "), SHORTEST_TITLE)
    return f"{line}: {render.one_line(session.title, min(left, render.PREVIEW))}"
