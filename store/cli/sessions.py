"""Commands that change whole sessions, and those about their drafts and trees.

They are create, append, rename, tag, archive, unarchive, tree, drafts, delete.
"""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..clock import resolve_now
from ..errors import DraftNotFound, InvalidValue
from ..formats import render_draft_text
from ..records import Draft, Erasure, Message, Session
from ..text import format_count
from . import render
from .options import (
    InputFormat,
    Json,
    OptionalSession,
    SessionId,
    complete_session,
    find_session,
    list_every_session,
    open_existing_store,
    open_store,
    parse_tag,
    require_consent,
    resolve_folder,
)
from .terminal import Column, TableRow, escape_controls

if TYPE_CHECKING:
    from .. import Store

SPEAKER_ROLES = ("system", "developer", "user", "assistant")
"""Roles of messages that are just a text; a tool's result needs its call's id, too."""
MIN_TITLE_LENGTH = 16
"""Code points of a title in a tree, however little room there is."""

IMPORT_ONLY_NOTICE = (
    "whose the exported session is, and where its project, is left out; `import -` keeps it"
)

ForksBySource = dict[str | None, list[Session]]
"""Sessions by the session that they continue; those that continue none under None."""

CreatedId = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="The session's id.", show_default="a new UUID"),
]
CreatedTitle = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="Its title.", show_default="none")
]
CreatedRoot = Annotated[
    str | None,
    typer.Option(
        "--project-root",
        metavar="FOLDER",
        help="The folder of the session's project.",
        show_default="none",
    ),
]
CreatedOwner = Annotated[
    str | None,
    typer.Option("--owner", metavar="TEXT", help="The session's owner.", show_default="nobody's"),
]
MessageText = Annotated[
    str,
    typer.Argument(
        metavar="TEXT",
        help="The text; - reads messages from standard input, as JSON.",
    ),
]
RoleOption = Annotated[
    str,
    typer.Option(
        "--role",
        metavar="ROLE",
        help=f"The role of TEXT: {', '.join(SPEAKER_ROLES)}.",
        autocompletion=lambda: list(SPEAKER_ROLES),
    ),
]
CreateOption = Annotated[
    bool, typer.Option("--create", help="Create the session if it does not exist.")
]
TitleArgument = Annotated[str, typer.Argument(metavar="TITLE", help="The new title; '' for none.")]
TagChanges = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Tags to set; KEY=null removes one. Default: print the tags.",
        show_default=False,
    ),
]
TreeSession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session, to draw its tree only. Default: all trees.",
        show_default=False,
    ),
]

DRAFT_COLUMNS = (
    Column("draft"),
    Column("session"),
    Column("behind", number=True),
    Column("kept"),
    Column("state"),
    Column("says", wide=True),
)
MINUTE = 60_000

DraftSession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="A session's id, or a unique beginning of it. Default: all.",
        show_default=False,
        autocompletion=complete_session,
    ),
]
FinishOption = Annotated[
    str | None,
    typer.Option(
        "--finish",
        metavar="DRAFT",
        help="Append this draft at its session's head, unchanged.",
        show_default=False,
    ),
]
DiscardOption = Annotated[
    str | None,
    typer.Option("--discard", metavar="DRAFT", help="Delete this draft.", show_default=False),
]
ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Also end a draft that a process still writes."),
]
IdleMinutes = Annotated[
    int,
    typer.Option(
        "--idle", metavar="MINUTES", min=0, help="Only drafts without new text for this long."
    ),
]

PurgeOption = Annotated[
    bool, typer.Option("--purge", help="Rewrite the file at once; writers wait meanwhile.")
]
ErasedOwner = Annotated[
    str | None, typer.Option("--owner", metavar="TEXT", help="Erase all that this owner has.")
]
DeletionConsent = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def create(
    ctx: typer.Context,
    id: CreatedId = None,  # noqa: A002 - the option's name
    title: CreatedTitle = None,
    project_root: CreatedRoot = None,
    owner: CreatedOwner = None,
    json: Json = False,
) -> None:
    """Create a session without messages.

    It creates the store if there is none.
    """
    with open_store(ctx) as store:
        root = resolve_folder(project_root)
        made = store.create_session(id, title=title, project_root=root, owner=owner)
    render.print_answer(made._asdict(), f"{made.id} is there, without messages", json=json)


def append(
    ctx: typer.Context,
    session: SessionId,
    text: MessageText,
    role: RoleOption = "user",
    create: CreateOption = False,
    format: InputFormat = None,  # noqa: A002 - the option's name
    json: Json = False,
) -> None:
    """Append a message, or all messages of standard input.

    Either all are stored or none.
    """
    given = _read_input_messages() if text == "-" else [_build_text_message(role, text)]
    with open_store(ctx) if create else open_existing_store(ctx) as store:
        found = session if create else find_session(store, session).id
        stored = store.append(found, given, create=create, format=format and format.value)
    positions = [each.seq for each in stored]
    messages = format_count(len(positions), "message")
    said = f"{found}: {messages}, the last at position {max(positions)}"
    render.print_answer({"session": found, "positions": positions}, said, json=json)


def rename(
    ctx: typer.Context, session: SessionId, title: TitleArgument, json: Json = False
) -> None:
    """Give a session another title."""
    with open_existing_store(ctx) as store:
        named = store.rename_session(find_session(store, session).id, title or None)
    said = f"{named.id}: {named.title}" if named.title else f"{named.id} has no title"
    render.print_answer(named._asdict(), said, json=json)


def tag(
    ctx: typer.Context,
    session: SessionId,
    tags: TagChanges = None,
    json: Json = False,
) -> None:
    """Set some of a session's metadata, or print them.

    The session keeps its place in lists.
    """
    changes = dict(map(parse_tag, tags or ()))
    with open_existing_store(ctx) as store:
        found = find_session(store, session)
        if changes:
            found = store.set_metadata(found.id, changes, merge=True)
    said = render.format_json(found.metadata)
    render.print_answer(found.metadata, f"{found.id}: {said}", json=json)


def archive(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """Remove a session from the list of active sessions.

    The session does not change; `sessions --archived` lists it.
    """
    with open_existing_store(ctx) as store:
        found = store.archive(find_session(store, session).id)
    render.print_answer(found._asdict(), f"{found.id} is archived", json=json)


def unarchive(ctx: typer.Context, session: SessionId, json: Json = False) -> None:
    """Return an archived session to the list of active sessions."""
    with open_existing_store(ctx) as store:
        found = store.unarchive(find_session(store, session).id)
    render.print_answer(found._asdict(), f"{found.id} is in use", json=json)


def tree(ctx: typer.Context, session: TreeSession = None, json: Json = False) -> None:
    """Draw the sessions and their forks as a tree."""
    with open_existing_store(ctx) as store:
        wanted = find_session(store, session) if session else None
        everything = {each.id: each for each in list_every_session(store)}
    forks = _group_forks(everything)
    roots = forks.get(None, []) if wanted is None else [_find_root(wanted, everything)]
    found = list(_walk_trees(roots, forks))
    if json:
        render.print_json_list(each._asdict() for _, each in found)
    elif not found:
        render.print_lines("no sessions; `convostore import` brings some in")
    else:
        room = render.count_columns()
        render.print_lines(*(_render_tree_line(*each, room) for each in found))


def _build_text_message(role: str, text: str) -> Message:
    """Return a message. Raises InvalidValue for an unknown role or an empty text."""
    if role not in SPEAKER_ROLES:
        raise InvalidValue(f"--role must be one of {', '.join(SPEAKER_ROLES)}, not {role!r}")
    if not text:
        raise InvalidValue("TEXT is empty: there is nothing to append")
    return {"role": role, "content": text}


def _read_input_messages() -> list[Message]:
    """Return the messages that standard input holds: one, a list, one a line, or an export."""
    text = sys.stdin.read()
    try:
        given = _parse_exported_messages(_parse_json_values(text))
    except ValueError as problem:
        raise InvalidValue(f"standard input is not JSON: {problem}") from None
    if not given:
        raise InvalidValue("standard input has no message")
    return given


def _parse_exported_messages(given: list[Any]) -> list[Message]:
    """Return the given values without the row of an export about its session."""
    from ..transcripts import convert_system_row, is_header_row

    if given and is_header_row(given[0]):
        render.print_remark(IMPORT_ONLY_NOTICE)
        given = given[1:]
    return [convert_system_row(each) for each in given]


def _parse_json_values(text: str) -> list[Any]:
    try:
        whole = json_format.loads(text)
    except ValueError:
        return [json_format.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def _group_forks(everything: dict[str, Session]) -> ForksBySource:
    """Return sessions by the session that they continue, which may be gone."""
    forks: ForksBySource = {}
    for each in everything.values():
        source = each.forked_from if each.forked_from in everything else None
        forks.setdefault(source, []).append(each)
    return forks


def _find_root(session: Session, everything: dict[str, Session]) -> Session:
    """Return the first existing session of a session's tree."""
    while session.forked_from in everything:
        session = everything[session.forked_from]
    return session


def _walk_trees(roots: list[Session], forks: ForksBySource) -> Iterator[tuple[int, Session]]:
    """Yield sessions with their depth in the tree, each before those that continue it."""
    left = [(0, root) for root in reversed(roots)]
    while left:
        depth, session = left.pop()
        yield depth, session
        behind = reversed(forks.get(session.id, []))
        left.extend((depth + 1, each) for each in behind)


def _render_tree_line(depth: int, session: Session, room: int) -> str:
    """Return a session in a line, its title cut to the remaining room, with a minimum length."""
    branch = "  " * (depth - 1) + "└ " if depth else ""
    origin = f" from {session.forked_at}" if session.forked_from else ""
    line = f"{branch}{session.id}{origin}, {format_count(session.head, 'message')}"
    if not session.title:
        return line
    left = max(room - len(line) - len(": "), MIN_TITLE_LENGTH)
    return f"{line}: {render.shorten_to_line(session.title, min(left, render.PREVIEW_LENGTH))}"


def drafts(
    ctx: typer.Context,
    session: DraftSession = None,
    finish: FinishOption = None,
    discard: DiscardOption = None,
    force: ForceOption = False,
    idle: IdleMinutes = 0,
    json: Json = False,
) -> None:
    """List answers that broke off, or are being streamed (live).

    It can also finish or discard one. DRAFT is its id, or a unique beginning of it.
    """
    if finish is not None and discard is not None:
        raise InvalidValue("a draft can be finished or discarded, not both")
    with open_existing_store(ctx) as store:
        found = store.drafts(
            None if session is None else find_session(store, session).id,
            before=resolve_now(None) - idle * MINUTE if idle else None,
        )
        if finish is not None:
            draft = _find_draft(found, finish)
            seq = store.finish_draft(draft, force=force).seq
            said = f"{draft.session_id}: the draft is its message {seq}"
            render.print_answer({"session": draft.session_id, "position": seq}, said, json=json)
        elif discard is not None:
            done = store.discard_draft(_find_draft(found, discard), force=force)
            said = f"{done.session_id}: the draft is gone"
            render.print_answer(done._asdict(), said, json=json)
        else:
            if json:
                render.print_json_list(each._asdict() for each in found)
            elif not found:
                render.print_lines("no drafts")
            else:
                rows: list[TableRow] = []
                for each in found:
                    says = render.shorten_to_line(render_draft_text(each.message, each.format))
                    at = render.format_moment(each.at)
                    state = "live" if each.live else "broken off"
                    rows.append((each.draft[:20], each.session_id, each.head, at, state, says))
                render.show_table(DRAFT_COLUMNS, rows)


def _find_draft(found: list[Draft], given: str) -> Draft:
    """Return the draft whose id begins so. Raises DraftNotFound, InvalidValue."""
    named = [each for each in found if given and each.draft.startswith(given)]
    if not named:
        raise DraftNotFound(given)
    if len(named) > 1:
        raise InvalidValue(f"{len(named)} drafts begin with {given!r}; write more of it")
    return named[0]


def delete(
    ctx: typer.Context,
    session: OptionalSession = None,
    owner: ErasedOwner = None,
    purge: PurgeOption = False,
    yes: DeletionConsent = False,
    json: Json = False,
) -> None:
    """Erase a session permanently, with its records; asks first.

    --owner erases all that an owner has. Messages that sessions of others show are kept.
    """
    if (session is None) is (owner is None):
        raise InvalidValue("name either a session, or an owner with --owner")
    with open_existing_store(ctx) as store:
        if owner is not None:
            _delete_owner_sessions(store, owner, purge=purge, yes=yes, json=json)
            return
        found = find_session(store, session or "")
        confirm_erasure(_describe_erased_session(found), yes=yes)
        (erased,) = store.delete_session(found.id, purge=purge)
    _print_erasure(erased, json=json)
    _report_purge(purged=erased.purged or not purge)


def _delete_owner_sessions(store: Store, owner: str, *, purge: bool, yes: bool, json: bool) -> None:
    found = store.scoped(owner)
    count = found.count_sessions() + found.count_sessions(archived=True)
    confirm_erasure(f"{format_count(count, 'session')} of {owner!r}", yes=yes)
    erased = store.delete_owner(owner)
    purged = purge and bool(store.purge())
    messages = sum(each.messages for each in erased)
    fields = {"owner": owner, "sessions": len(erased), "messages": messages, "purged": purged}
    sessions = format_count(len(erased), "session")
    said = f"{owner}: {sessions} with {format_count(messages, 'message')} erased"
    render.print_answer(fields, said, json=json)
    _report_purge(purged=purged or not purge)


def _report_purge(*, purged: bool) -> None:
    if not purged:
        render.print_problem("the file could not be purged now; `convostore purge` says why")


def forget(
    ctx: typer.Context, session: SessionId, yes: DeletionConsent = False, json: Json = False
) -> None:
    """Erase what a session's line has left permanently; asks first.

    The line stays, and so does what other sessions' lines run through.
    """
    with open_existing_store(ctx) as store:
        found = find_session(store, session)
        confirm_erasure(f"what {_describe_erased_session(found)} has left", yes=yes)
        erased = store.forget(found.id)
    _print_erasure(erased, json=json)


def confirm_erasure(what: str, *, yes: bool) -> None:
    """Ask on the terminal whether to erase something, unless it was said. Raises StoreError."""
    question = f"Erase {what}? This cannot be undone"
    require_consent(question, yes=yes, aim="erase permanently", refusal="nothing was erased")


def _print_erasure(erased: Erasure, *, json: bool) -> None:
    said = f"{erased.session_id}: {format_count(erased.messages, 'message')} erased"
    if erased.kept:
        said += f"; {erased.kept} more stay, other sessions' lines run through them"
    render.print_answer(erased._asdict(), said, json=json)


def _describe_erased_session(session: Session) -> str:
    title = f" ({render.shorten_to_line(session.title)})" if session.title else ""
    messages = format_count(session.head, "message")
    return f"session {escape_controls(session.id)}{title} with {messages}"
