"""Read a file event by event and take each of its sessions into the store."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from .. import Scoped, transcripts
from ..errors import InvalidValue, SessionExists, StoreError, UnknownTranscript, correct_step_errors
from ..inspection import is_store_file
from ..records import FilePath, Message, ProgressCallback
from ..transcripts import (
    CompactionEvent,
    Event,
    Limits,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SideRowsEvent,
    StoreRow,
)
from .continuations import ContinuationSearch, EventLookahead, StoredBeginning
from .dump import import_whole_store
from .known_files import FileLook, SessionEnds, find_known_report, look_at_file, remember_file
from .session import FileSession, ImportReport
from .session_ids import ImportTarget, OwnerIds, WantedIds
from .session_metadata import find_or_create_session, find_said_time, update_session_from_file
from .validation import PreparedMessages, TranscriptValidation

EARLY_MESSAGES_LIMIT = 20
"""Messages, at most, that are searched for the time at which a session began."""


def import_file(
    store: ImportTarget,
    path: FilePath,
    *,
    kind: str | None = None,
    session_id: str | None = None,
    replace: bool = False,
    project_root: str | None = None,
    beside: bool = False,
    progress: ProgressCallback | None = None,
    max_bytes: int | None = None,
    max_seconds: float | None = None,
) -> ImportReport:
    """Import every session of a transcript; a later import of the file adds only new messages.

    ``kind`` None detects the kind by content. ``session_id`` names the first session of the file;
    sessions that belong to it are named after it. An answer that was incomplete at its import is
    replaced by the whole one. A session that differs from the file is left unchanged and noted;
    with ``replace`` it is rewound to the last common message, which can be undone, and continued as
    in the file. Title and metadata of a session follow the file, except a title that was set in the
    store; its times are those of its messages. ``project_root`` is the root of new sessions (None:
    as in the file). A message that cannot be stored is noted and left out. At the end all messages
    are added to the search index, if that is on. ``progress`` gets the bytes read so
    far, and those of the file.

    For files of others, ``max_bytes`` limits the bytes read, the bytes unpacked and the text made
    of them, each by itself; ``max_seconds`` limits the time. Beyond a limit LimitExceeded is
    raised; messages stored before stay. On a `Scoped` all sessions belong to the owner, whatever
    the file says; a session whose id belongs to another owner gets a new id, the same each time.
    Raises UnknownTranscript, also if there is no message; LimitExceeded, InvalidValue, StoreError.
    """
    if is_store_file(store._database.path, path):
        raise StoreError(
            f"{os.fspath(path)!r} is the store itself; "
            "export its sessions, then import the exported files"
        )
    limits = Limits(max_bytes, max_seconds)
    look = look_at_file(path, kind, beside) if max_bytes is max_seconds is None else None
    if look:
        known = find_known_report(store, path, look.ask(session_id, replace, project_root))
        if known:
            size = transcripts.measure_file_size(path)
            (progress or (lambda *_: None))(size, size)
            return known
    lost: set[str] = set()
    while True:
        begun = open_transcript(path, kind=kind, beside=beside, progress=progress, limits=limits)
        try:
            return import_opened_transcript(
                store, begun, session_id=session_id, replace=replace, project_root=project_root
            )
        except SessionExists as taken:
            # another writer took an id between its trial and its use: the next trial sees that
            name = taken.session_id
            if not isinstance(store, Scoped) or name in lost or name == session_id:
                raise
            lost.add(name)
            limits.begin_anew()


class OpenedTranscript(NamedTuple):
    """A file that holds a message, read as far as was needed to see one.

    ``events`` are all events of the file; ``lines`` returns the number of lines at the end.
    ``file`` is what `Session.file` becomes (None: the events come from no file that stays);
    ``look`` is the file as it was before, ``prepared`` are the messages that were looked at.
    """

    path: Path
    kind: str
    events: Iterator[Event]
    lines: list[int]
    limits: Limits
    file: str | None
    look: FileLook | None
    prepared: PreparedMessages


def open_transcript(
    path: FilePath,
    *,
    kind: str | None = None,
    beside: bool = False,
    progress: ProgressCallback | None = None,
    limits: Limits | None = None,
) -> OpenedTranscript:
    """Begin to read a file.

    Raises UnknownTranscript if it holds no believable message, LimitExceeded, StoreError.
    """
    limits = limits or Limits()
    look = look_at_file(path, kind, beside)
    found = kind or transcripts.sniff(path, limits)
    lines: list[int] = []
    size = transcripts.measure_file_size(path)
    events = transcripts.read(
        path,
        kind=found,
        progress=progress and (lambda done: progress(done, size)),
        lines=lines.append,
        beside=beside,
        limits=limits,
    )
    # For a kind named by the caller, doubtful events are taken as they are, with a note.
    is_named = kind is not None
    validation, seen = TranscriptValidation(), []
    for event in events:
        seen.append(event)
        validation.take(event)
        if validation.is_enough or isinstance(event, StoreRow):
            break
    if not any(isinstance(event, SessionMessage | StoreRow) for event in seen):
        raise UnknownTranscript(f"{os.fspath(path)} has no message of the kind {found}")
    problem = validation.problem()
    if problem and not is_named:
        raise transcripts.build_refusal(path, problem)
    notes = (
        [NoteEvent(None, f"read as {found}, as asked: {problem}", broken=True)] if problem else []
    )
    believed = chain(notes, seen, events)
    file = str(Path(path).absolute())
    prepared = validation.prepared
    return OpenedTranscript(Path(path), found, believed, lines, limits, file, look, prepared)


def import_opened_transcript(
    store: ImportTarget,
    begun: OpenedTranscript,
    *,
    session_id: str | None = None,
    replace: bool = False,
    project_root: str | None = None,
) -> ImportReport:
    """Import a file that `open_transcript` has opened, as `import_file` does."""
    report = ImportReport(begun.path, begun.kind, [], [])
    ends: SessionEnds | None = None
    with correct_step_errors():
        if begun.kind == transcripts.STORE_HEAD_KEY:
            if isinstance(store, Scoped):
                raise InvalidValue(
                    "a whole store has sessions of several owners; import it without scope"
                )
            if session_id is not None or project_root is not None:
                raise InvalidValue(
                    "a whole store is imported unchanged, with its own ids and project roots"
                )
            import_whole_store(store, begun.events, report)
        else:
            events = _limit_events(_set_project_root(begun.events, project_root), begun.limits)
            events = map(WantedIds(session_id).rename, events)
            if isinstance(store, Scoped):
                events = map(OwnerIds(store, session_id).rename, events)
            ahead = EventLookahead(events)
            ends = _FileImport(
                store, report, begun.file, ahead, begun.prepared, replace=replace
            ).take_all()
    if any(each.appended for each in report.sessions):
        with suppress(StoreError):  # the messages are stored, and a later search indexes them
            store.index()
    report = report._replace(lines=begun.lines[-1])
    if begun.look and ends is not None:
        look = begun.look.ask(session_id, replace, project_root)
        remember_file(store, look, report, ends)
    return report


def _limit_events(events: Iterator[Event], limits: Limits) -> Iterator[Event]:
    """Yield events while they are within the limits. Raises LimitExceeded."""
    for event in events:
        limits.check_time()
        limits.make(event)
        yield event


def _set_project_root(events: Iterator[Event], project_root: str | None) -> Iterator[Event]:
    """Yield events; give each session the project root, if there is one."""
    for event in events:
        if isinstance(event, SessionEvent) and project_root is not None:
            yield event._replace(project_root=project_root)
        else:
            yield event


class _FileImport:
    """Import the events of a file, session by session, and keep the results in a report.

    ``_early`` are the messages of the last opened session, which has not begun.
    """

    def __init__(
        self,
        store: ImportTarget,
        report: ImportReport,
        file: str | None,
        ahead: EventLookahead,
        prepared: PreparedMessages,
        *,
        replace: bool,
    ) -> None:
        self._store = store
        self._prepared = prepared
        self._report = report
        self._origin = report.kind, file
        self._ahead = ahead
        self._replace = replace
        self._opened: SessionEvent | None = None
        self._early: deque[SessionMessage] = deque()
        self._places: dict[str, Sequence[int]] = {}
        self._kept: dict[str, StoredBeginning] = {}
        self._told: set[str] = set()
        self._elsewhere = self._elsewhere_in("")
        self._current: FileSession | None = None
        self._ends: SessionEnds = []
        self._is_settled = True

    def take_all(self) -> SessionEnds | None:
        """Take all events; return how the sessions ended, None if not all is settled."""
        for event in self._ahead:
            self._take(event)
        self._finish()
        return self._ends if self._is_settled else None

    def _take(self, event: Event) -> None:
        if isinstance(event, NoteEvent):
            self._report.notes.append(event)
        elif isinstance(event, SessionEvent):
            self._finish()
            self._opened = event
        elif isinstance(event, CompactionEvent):
            self._compact(event)
        elif isinstance(event, SideRowsEvent):
            self._keep_beside(event)
        elif isinstance(event, SessionMessage):
            self._say(event)

    def _say(self, said: SessionMessage) -> None:
        if self._current:
            self._current.take(said)
        elif self._opened:
            self._wait(self._opened, said)

    def _finish(self) -> None:
        """Append the remaining messages of the last opened session."""
        if self._opened:
            self._end(self._opened, self._current or self._begun(self._opened, None))
        self._opened = self._current = None

    def _compact(self, event: CompactionEvent) -> None:
        """Hide the messages that the program hid, after the session has begun."""
        if self._opened and not self._current:
            self._current = self._begun(self._opened, None)
        if self._current:
            self._current.compact(event)

    def _keep_beside(self, event: SideRowsEvent) -> None:
        """Keep the rows beside the last message, after the session has begun."""
        if self._opened and not self._current:
            self._current = self._begun(self._opened, None)
        if self._current:
            self._current.keep_beside(event, self._report.kind)

    def _wait(self, opened: SessionEvent, said: SessionMessage) -> None:
        """Keep a message until one gives the time at which the session began."""
        self._early.append(said)
        moment = find_said_time(said)
        if moment or len(self._early) == EARLY_MESSAGES_LIMIT:
            self._current = self._begun(opened, moment)

    def _begun(self, opened: SessionEvent, moment: int | None) -> FileSession:
        store, notes = self._store, self._report.notes
        if opened.stem is None:
            self._elsewhere = self._elsewhere_in(opened.session_id)
        places = self._places_before(opened)
        begins = partial(self._where_it_begins, opened)
        stored = find_or_create_session(store, opened, moment, notes, begins, *self._origin)
        if stored.forked_from is None:
            places = []
        session = FileSession(
            store,
            stored,
            self._ahead,
            self._elsewhere,
            notes,
            self._prepared,
            places=places,
            replace=self._replace,
        )
        while self._early:
            session.take(self._early.popleft())
        return session

    def _places_before(self, opened: SessionEvent) -> Sequence[int]:
        """Return the positions of the messages before a session's own messages."""
        if opened.stem is None or opened.stem.session_id not in self._places:
            return []
        return self._places[opened.stem.session_id][: opened.stem.after]

    def _where_it_begins(self, opened: SessionEvent) -> StoredBeginning | None:
        """Return where the store has most of a session's beginning; None if it has none of it.

        That is on the line of the session that it continues, on a branch that a rewind left, or on
        the line of a session from an earlier import.
        """
        places = self._places_before(opened)
        found = [self._kept.get(opened.session_id)]
        if opened.stem and places:
            home, place = opened.stem.session_id, places[-1]
            found += [StoredBeginning(home, None, place), self._elsewhere.find(home, place)]
        return max(filter(None, found), key=attrgetter("end"), default=None)

    def _elsewhere_in(self, tree: str) -> ContinuationSearch:
        return ContinuationSearch(self._store, tree, self._told, self._kept, self._coming)

    def _coming(self) -> list[Message]:
        """Return the messages of the last opened session, which has not begun."""
        return [*(said.message for said in self._early), *self._ahead.rest()]

    def _end(self, opened: SessionEvent, session: FileSession) -> None:
        self._report.sessions.append(session.finish())
        for name, kept in session.kept.items():
            known = self._kept.get(name, kept)
            self._kept[name] = max(kept, known, key=attrgetter("end"))
        self._told.add(opened.session_id)
        if session.is_as_long:
            self._places[opened.session_id] = session.places
            self._is_settled &= not update_session_from_file(
                self._store, opened, self._report.notes
            )
        self._is_settled &= session.is_settled
        self._ends.append((session.revision, session.has_more))
