"""Keep the title, the metadata and the times of a session up to date with its file.

A growing file may add to all three. Values that a user set in the store stay.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ..clock import SECONDS_BELOW, milliseconds
from ..errors import InvalidValue, SessionNotFound
from ..history import TEXT_LIMIT
from ..messages import find_message_time
from ..records import Session
from ..text import Fields, truncate
from ..transcripts import EXTRA_KEYS, Noted, Opened, Said
from .left import Kept
from .names import AnySteps, Face


def said_at(said: Said) -> int | None:
    """Return the time of a message (ms), at most the present; None if it is unknown."""
    moment = said.moment or find_message_time(said.message)
    if moment is None or moment < SECONDS_BELOW:
        return None
    return at_latest_now(moment)


def at_latest_now(moment: int | None) -> int | None:
    """Return a moment (ms), or the present if that is earlier; None for None."""
    return None if moment is None else min(moment, milliseconds(None))


def stored_session(
    store: Face,
    opened: Opened,
    moment: int | None,
    notes: list[Noted],
    begins: Callable[[], Kept | None],
) -> Session:
    """Return the session of that id; create it as of a moment (None: now) if there is none.

    Messages that the store already has are not stored again: the new session continues them.
    """
    with suppress(SessionNotFound):
        return store.session(opened.session_id)
    kept = begins()
    moment = opened.created_at or moment
    create = (
        partial(_forked, opened=opened, kept=kept) if kept else partial(_created, opened=opened)
    )
    try:
        return store.atomically(partial(create, metadata=opened.metadata), now=moment)
    except InvalidValue as refused:
        notes.append(_refused(opened, refused))
        return store.atomically(partial(create, metadata={}), now=moment)


def _created(steps: AnySteps, opened: Opened, metadata: Fields) -> Session:
    return steps.create_session(
        opened.session_id,
        title=_storable(opened.title),
        project_root=_storable(opened.project_root),
        owner=_storable(opened.owner),
        metadata=metadata,
    )


def _forked(steps: AnySteps, opened: Opened, kept: Kept, metadata: Fields) -> Session:
    """Return a new session that continues the branch of another session."""
    fork = partial(steps.fork, kept.session_id, kept.end, opened.session_id)
    session = fork(branch=kept.branch, title=_storable(opened.title), owner=_storable(opened.owner))
    return steps.set_metadata(session.id, metadata)


def brought_up_to_date(store: Face, opened: Opened, notes: list[Noted]) -> None:
    """Give a session the present title and metadata of its file."""
    session = store.session(opened.session_id)
    if not (_title(session, opened) or _metadata(session, opened)):
        return
    try:
        store.atomically(partial(_bring, opened=opened))
    except InvalidValue as refused:
        notes.append(_refused(opened, refused))


def _bring(steps: AnySteps, opened: Opened) -> None:
    """Change the values that differ; keep the place of the session in the order of activity."""
    session = steps.session(opened.session_id)
    title, metadata = _title(session, opened), _metadata(session, opened)
    if title:
        steps.rename_session(session.id, title, now=session.updated_at)
    if metadata:
        steps.set_metadata(session.id, metadata)


def _title(session: Session, opened: Opened) -> str | None:
    """Return the file's title if the session has no title, or one from a shorter file."""
    title = _storable(opened.title)
    if title in (None, session.title):
        return None
    given = {
        None,
        *map(_storable, opened.titles),
        *(held for held in session.metadata.values() if isinstance(held, str)),
    }
    return title if session.title in given else None


def _metadata(session: Session, opened: Opened) -> Fields | None:
    """Return a session's metadata updated from its file, None if nothing changes.

    A key that only the session has stays, whatever its origin. A value that was equal in all
    messages of a shorter file stays too, because those messages do not repeat it.
    """
    told = {key: _with_constants(session, key, held) for key, held in opened.metadata.items()}
    metadata = {**session.metadata, **told}
    return None if metadata == session.metadata else metadata


def _with_constants(session: Session, key: str, held: object) -> object:
    known = session.metadata.get(key)
    if key in EXTRA_KEYS and isinstance(known, dict) and isinstance(held, dict):
        return {**known, **held}
    return held


def _refused(opened: Opened, refused: InvalidValue) -> Noted:
    text = f"the metadata of session {opened.session_id!r} is left out: {refused}"
    return Noted(None, text, broken=True)


def _storable(text: str | None) -> str | None:
    """Return a text cut to size, with a replacement for each character that no column can hold."""
    if not text:
        return text
    held = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return truncate(held, TEXT_LIMIT)
