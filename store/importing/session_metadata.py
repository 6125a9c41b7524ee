"""Keep the title, the metadata and the times of a session up to date with its file.

A growing file may add to all three. Values that a user set in the store stay.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ..clock import SECONDS_LIMIT, resolve_now
from ..errors import InvalidValue, SessionNotFound
from ..records import TEXT_LIMIT, Session, find_message_time
from ..text import JsonFields, truncate
from ..transcripts import EXTRA_KEYS, NoteEvent, SessionEvent, SessionMessage
from .continuations import StoredBeginning
from .session_ids import AnySteps, ImportTarget


def find_said_time(said: SessionMessage) -> int | None:
    """Return the time of a message (ms), at most the present; None if it is unknown."""
    moment = said.moment or find_message_time(said.message)
    if moment is None or moment < SECONDS_LIMIT:
        return None
    return limit_to_now(moment)


def limit_to_now(moment: int | None) -> int | None:
    """Return a moment (ms), or the present if that is earlier; None for None."""
    return None if moment is None else min(moment, resolve_now(None))


def find_or_create_session(
    store: ImportTarget,
    opened: SessionEvent,
    moment: int | None,
    notes: list[NoteEvent],
    begins: Callable[[], StoredBeginning | None],
    source: str,
    file: str | None,
) -> Session:
    """Return the session of that id; create it as of a moment (None: now) if there is none.

    Messages that the store already has are not stored again: the new session continues them. The
    program of a session, and its file, are those of its last import that was from a file.
    """
    with suppress(SessionNotFound):
        known = store.session(opened.session_id)
        file = file or known.file
        if (known.source, known.file) == (source, file):
            return known
        return store.atomically(lambda steps: steps.set_origin(known.id, source, file))
    kept = begins()
    moment = opened.created_at or moment
    create = (
        partial(_fork_imported_session, opened=opened, kept=kept)
        if kept
        else partial(_create_imported_session, opened=opened)
    )

    def create_with_origin(steps: AnySteps, metadata: JsonFields) -> Session:
        return steps.set_origin(create(steps, metadata=metadata).id, source, file)

    try:
        return store.atomically(partial(create_with_origin, metadata=opened.metadata), now=moment)
    except InvalidValue as refused:
        notes.append(_note_refused_metadata(opened, refused))
        return store.atomically(partial(create_with_origin, metadata={}), now=moment)


def _create_imported_session(
    steps: AnySteps, opened: SessionEvent, metadata: JsonFields
) -> Session:
    return steps.create_session(
        opened.session_id,
        title=_make_storable(opened.title),
        project_root=_make_storable(opened.project_root),
        owner=_make_storable(opened.owner),
        metadata=metadata,
    )


def _fork_imported_session(
    steps: AnySteps, opened: SessionEvent, kept: StoredBeginning, metadata: JsonFields
) -> Session:
    """Return a new session that continues the branch of another session."""
    fork = partial(steps.fork, kept.session_id, kept.end, opened.session_id)
    session = fork(
        branch=kept.branch, title=_make_storable(opened.title), owner=_make_storable(opened.owner)
    )
    return steps.set_metadata(session.id, metadata)


def update_session_from_file(
    store: ImportTarget, opened: SessionEvent, notes: list[NoteEvent]
) -> bool:
    """Give a session the present title and metadata of its file; tell whether one is new."""
    session = store.session(opened.session_id)
    if not (_find_new_title(session, opened) or _merge_file_metadata(session, opened)):
        return False
    try:
        store.atomically(partial(_update_changed_values, opened=opened))
    except InvalidValue as refused:
        notes.append(_note_refused_metadata(opened, refused))
    return True


def _update_changed_values(steps: AnySteps, opened: SessionEvent) -> None:
    """Change the values that differ; keep the place of the session in the order of activity."""
    session = steps.session(opened.session_id)
    title, metadata = _find_new_title(session, opened), _merge_file_metadata(session, opened)
    if title:
        steps.rename_session(session.id, title, now=session.updated_at)
    if metadata:
        steps.set_metadata(session.id, metadata)


def _find_new_title(session: Session, opened: SessionEvent) -> str | None:
    """Return the file's title if the session has no title, or one from a shorter file."""
    title = _make_storable(opened.title)
    if title in (None, session.title):
        return None
    given = {
        None,
        *map(_make_storable, opened.titles),
        *(held for held in session.metadata.values() if isinstance(held, str)),
    }
    return title if session.title in given else None


def _merge_file_metadata(session: Session, opened: SessionEvent) -> JsonFields | None:
    """Return a session's metadata updated from its file, None if nothing changes.

    A key that only the session has stays, whatever its origin. A value that was equal in all
    messages of a shorter file stays too, because those messages do not repeat it.
    """
    told = {key: _merge_constants(session, key, held) for key, held in opened.metadata.items()}
    metadata = {**session.metadata, **told}
    return None if metadata == session.metadata else metadata


def _merge_constants(session: Session, key: str, held: object) -> object:
    known = session.metadata.get(key)
    if key in EXTRA_KEYS and isinstance(known, dict) and isinstance(held, dict):
        return {**known, **held}
    return held


def _note_refused_metadata(opened: SessionEvent, refused: InvalidValue) -> NoteEvent:
    text = f"the metadata of session {opened.session_id!r} is left out: {refused}"
    return NoteEvent(None, text, broken=True)


def _make_storable(text: str | None) -> str | None:
    """Return a text cut to size, with a replacement for each character that no column can hold."""
    if not text:
        return text
    held = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return truncate(held, TEXT_LIMIT)
