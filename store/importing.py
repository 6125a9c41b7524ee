"""Transcript files into a store: streamed, in batches, and as often as one likes; what is there already stays.

A session that exists is compared with its file message by message, by digest; only what is new is appended. Nothing
here knows a file format: `transcripts` reads, this writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from . import transcripts
from .errors import InvalidMessage, InvalidValue, SessionNotFound, StoreError
from .messages import Message, Prepared, content_text, prepare
from .records import Session, StoredMessage
from .store import Store
from .transcripts import Noted, Opened, Said
from .transcripts.events import FACTS
from .transcripts.source import Progress

BATCH = 500
"""Messages appended in one transaction, at most."""
BATCH_SIZE = 4 * 1024 * 1024
"""Code points of stored text after which a batch is appended, however few its messages are."""
PAGE = 100
"""Stored messages read at once to be compared."""

COMPANIONS = ("", "-wal", "-shm", "-journal", "-lock")
"""What the names of the files of a store end with, after the database's own."""


class ImportedSession(NamedTuple):
    """One session of a file: its messages and tool calls in the file, how many were new to the store, its head now.

    ``differs_at`` is the first position at which the stored line was another one (None: they agree as far as both go).
    """

    id: str
    messages: int
    appended: int
    head: int
    tool_calls: int
    differs_at: int | None


class ImportReport(NamedTuple):
    """What became of a file; a note that is ``broken`` tells of something unreadable, refused or differing."""

    path: Path
    kind: str
    sessions: list[ImportedSession]
    notes: list[Noted]


def import_file(
    store: Store,
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    session_id: str | None = None,
    replace: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import every session of a transcript; importing it again adds only what the file has gained.

    ``kind`` None means by content. ``session_id`` names the file's first session (those that hang on it are named
    after it). An answer that was still being written when it was imported is replaced by the whole one. A session that
    differs from the file is left alone and noted; with ``replace`` it is rewound to the last message they share, which
    can be undone, and continued as in the file. A message that cannot be stored is noted and left out. ``progress``
    gets the bytes read so far. Raises UnknownTranscript, StoreError.
    """
    _refuse_own_file(store, path)
    found = kind or transcripts.sniff(path)
    names = _Names(session_id)
    report = ImportReport(Path(path), found, [], [])
    current: _Line | None = None
    for event in transcripts.read(path, kind=found, progress=progress):
        if isinstance(event, Said) and current:
            current.take(event.message)
        elif isinstance(event, Opened):
            _finish(current, report)
            current = _Line(store, _session(store, names.rename(event), report.notes), report.notes, replace=replace)
        elif isinstance(event, Noted):
            report.notes.append(event)
    _finish(current, report)
    return report


def is_file_of(store: Store, path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is the store's own database or a file beside it, without opening it."""
    own = store.database.path
    return own is not None and os.path.realpath(path) in {f"{own}{ending}" for ending in COMPANIONS}


class _Names:
    """Session ids as the caller wants them: the first session's, and of those whose ids continue the first one's."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        self._first: str | None = None

    def rename(self, opened: Opened) -> Opened:
        """Return a session under its new id, its parent's likewise."""
        if self._wanted is None:
            return opened
        self._first = self._first or opened.session_id
        parent = opened.metadata.get("parent_session")
        renamed = {"parent_session": self._wanted} if parent == self._first else {}
        return opened._replace(session_id=self._new(opened.session_id), metadata={**opened.metadata, **renamed})

    def _new(self, session_id: str) -> str:
        assert self._first is not None
        assert self._wanted is not None
        if not session_id.startswith(self._first):
            return session_id
        return self._wanted + session_id.removeprefix(self._first)


class _Line:
    """One session while its file is read: the next messages are compared with the stored line, then appended to it."""

    def __init__(self, store: Store, session: Session, notes: list[Noted], *, replace: bool) -> None:
        self._store, self._id, self._notes, self._replace = store, session.id, notes, replace
        self._stored = _messages(store, session)
        self._head = session.head
        self._place = self._count = self._calls = self._appended = 0
        self._digests: dict[str, bytes] = {}
        self._batch: list[Message] = []
        self._size = 0
        self._differs_at: int | None = None

    def take(self, message: Message) -> None:
        """Take the file's next message: it is on the line already, or new."""
        self._count += 1
        prepared = self._prepared(message)
        if prepared is None:
            return
        self._calls += len(prepared.calls)
        if self._left_alone() or self._repeated(prepared):
            return
        self._place += 1
        if self._place <= self._head:
            self._compare(message, prepared.digest)
        if self._place > self._head and not self._left_alone():
            self._add(prepared)

    def finish(self) -> ImportedSession:
        """Append what is left; return what became of the session."""
        self._flush()
        return ImportedSession(self._id, self._count, self._appended, self._head, self._calls, self._differs_at)

    def _left_alone(self) -> bool:
        return self._differs_at is not None and not self._replace

    def _prepared(self, message: Message) -> Prepared | None:
        try:
            return prepare(message)
        except InvalidMessage as refused:
            key = f" (key {refused.key!r})" if refused.key else ""
            self._note(f"is left out, it cannot be stored: {refused.problem}{key}")
            return None

    def _repeated(self, prepared: Prepared) -> bool:
        """Tell whether an earlier message of the file has the same id: the store keeps one message for each."""
        if prepared.message_id is None:
            return False
        earlier = self._digests.get(prepared.message_id)
        if earlier is None:
            self._digests[prepared.message_id] = prepared.digest
            return False
        other = "" if earlier == prepared.digest else ", which says something else,"
        self._note(f"is left out: an earlier message{other} has its id, {prepared.message_id!r:.80}")
        return True

    def _compare(self, message: Message, digest: bytes) -> None:
        """Compare the file's message with the stored one in its place."""
        stored = next(self._stored, None)
        if stored is None or not (stored.digest == digest or _spoken(stored.message) == _spoken(message)):
            if stored and _begins(stored.message, message) and self._only_results_follow():
                self._take_again()
            else:
                self._part()

    def _only_results_follow(self) -> bool:
        return all(stored.message["role"] == "tool" for stored in self._stored)

    def _take_again(self) -> None:
        """Rewind to before an answer that was not whole when it was imported, so that it is taken as it is now."""
        self._head = self._store.rewind(self._id, to=self._place - 1).head
        text = f"message {self._count} of {self._id!r} was still being written when it was imported, it is now whole"
        self._notes.append(Noted(None, text, broken=False))

    def _part(self) -> None:
        """Settle what happens where the line and the file part."""
        self._differs_at = self._place
        back = f"`convostore undo {self._id}` brings the old line back"
        if self._replace:
            self._head = self._store.rewind(self._id, to=self._place - 1).head
            text = f"session {self._id!r} differed from position {self._place} on and was replaced; {back}"
        else:
            text = (
                f"session {self._id!r} differs from the file from position {self._place} on and was left as it is; "
                f"--replace rewinds it there and appends the file's version, then {back}"
            )
        self._notes.append(Noted(None, text, broken=True))

    def _add(self, prepared: Prepared) -> None:
        self._batch.append(prepared.message)
        texts = (prepared.content, prepared.extra, *(call.arguments for call in prepared.calls))
        self._size += sum(len(text) for text in texts if text)
        if len(self._batch) >= BATCH or self._size >= BATCH_SIZE:
            self._flush()

    def _flush(self) -> None:
        if self._batch:
            self._head = self._store.append(self._id, self._batch, expected_head=self._head)[-1].seq
            self._appended += len(self._batch)
        self._batch, self._size = [], 0

    def _note(self, text: str) -> None:
        self._notes.append(Noted(None, f"message {self._count} of {self._id!r} {text}", broken=True))


def _spoken(message: Message) -> Message:
    """Return what was said, without what stands around it: of that a longer file may know more."""
    return {key: value for key, value in message.items() if key not in FACTS}


def _begins(stored: Message, message: Message) -> bool:
    """Tell whether a stored answer is the beginning of the file's: parsers make one of all lines there are."""
    if stored["role"] != "assistant" or message["role"] != "assistant" or not stored.keys() & FACTS:
        return False
    text, whole = content_text(stored.get("content")), content_text(message.get("content"))
    parts = {key: value for key, value in stored.items() if isinstance(value, list) and key != "content"}
    return whole.startswith(text) and all((message.get(key) or [])[: len(parts[key])] == parts[key] for key in parts)


def _messages(store: Store, session: Session) -> Iterator[StoredMessage]:
    """Return a session's messages as they are read one after the other."""
    return chain.from_iterable(store.pages(session.id, 1, session.head, size=PAGE))


def _finish(line: _Line | None, report: ImportReport) -> None:
    if line:
        report.sessions.append(line.finish())


def _session(store: Store, opened: Opened, notes: list[Noted]) -> Session:
    """Return the session of that id, created where there is none."""
    session_id, title, root, metadata = opened
    try:
        return store.session(session_id)
    except SessionNotFound:
        create = partial(store.create_session, session_id, title=_storable(title), project_root=_storable(root))
    try:
        return create(metadata=metadata)
    except InvalidValue as refused:
        notes.append(Noted(None, f"the metadata of session {session_id!r} is left out: {refused}", broken=True))
        return create()


def _storable(text: str | None) -> str | None:
    """Return a text with a replacement character for each character that no column can hold."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode() if text else text


def _refuse_own_file(store: Store, path: str | os.PathLike[str]) -> None:
    if is_file_of(store, path):
        raise StoreError(f"{os.fspath(path)!r} is the store itself; export its sessions, then import what was exported")
