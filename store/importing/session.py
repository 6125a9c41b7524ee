"""Import one session of a file into its line in the store, and report it.

Messages that the line already has are compared one by one; only new messages are appended, in
batches.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from .. import build_batch
from ..errors import InvalidMessage, StoreError
from ..formats import PreparedMessage, digest_row
from ..records import Compaction, Message, Session, StoredMessage, is_redacted
from ..text import JsonFields
from ..transcripts import CompactionEvent, KeyNumbers, NoteEvent, SessionMessage, SideRowsEvent
from .comparison import (
    has_only_tool_results,
    is_answer_beginning,
    is_result_of_call,
    is_same_as_stored,
    remove_extra_keys,
)
from .continuations import (
    ContinuationSearch,
    EventLookahead,
    StoredBeginning,
    TakenBackMessages,
    count_equal_pairs,
)
from .session_ids import AnySteps, ImportTarget
from .session_metadata import find_said_time, limit_to_now
from .usage import RecordedUsage
from .validation import PreparedMessages, prepare_file_message

PositionSpan: TypeAlias = tuple[int, int]
"""The first and the last position of a range."""

BATCH_MESSAGES = 500
"""Messages appended in one transaction, at most."""
BATCH_SIZE = 4 * 1024 * 1024
"""Code points of stored text after which a batch is appended, however few its messages are."""
MESSAGE_PAGE_SIZE = 100
"""Stored messages read at once to be compared."""
DIGEST_PREFIX_BYTES = 7
"""Bytes of the digest that distinguish a message from another one with the same id."""


class ImportedSession(NamedTuple):
    """One session of a file: its messages and tool calls there, and its head in the store.

    ``appended`` counts the messages that were new to the store. ``differs_at`` is the first
    position at which the stored line differs, None if both agree as far as they go.
    """

    id: str
    messages: int
    appended: int
    head: int
    tool_calls: int
    differs_at: int | None


class ImportReport(NamedTuple):
    """The results of an import of one file.

    A ``broken`` note reports something that could not be read, was refused, or differs.
    ``lines`` is the number of lines read; a document counts as one.
    """

    path: Path
    kind: str
    sessions: list[ImportedSession]
    notes: list[NoteEvent]
    lines: int = 0

    @property
    def left_out(self) -> Counter[str]:
        """Return the number of things left out, by kind."""
        counts = Counter({note.thing: note.left_out for note in self.notes if note.thing})
        if broken := sum(note.broken for note in self.notes):
            counts["broken or refused part"] = broken
        return counts


class HidableRanges:
    """Follow a line message by message to find the messages that can be hidden.

    ``_callers`` are the positions of messages whose calls wait for results, by call id. ``_groups``
    holds each of these messages with its results, as long as one of its ``_waiting`` calls is left.
    """

    def __init__(self) -> None:
        self._system: set[int] = set()
        self._question = 0
        self._callers: dict[str, int] = {}
        self._groups: dict[int, list[int]] = {}
        self._waiting: Counter[int] = Counter()

    def take(self, message: Message, place: int) -> None:
        """Take the message at a position."""
        role = message.get("role")
        if role in ("system", "developer"):
            self._system.add(place)
        elif role == "user":
            self._question = place
        elif role == "tool":
            self._answer(message.get("tool_call_id"), place)
        else:
            self._call(message, place)

    def ranges(self, first: int, last: int) -> list[PositionSpan]:
        """Return the parts of a range that can be hidden."""
        return list(_list_gaps(first, last, sorted(self._staying())))

    def _call(self, message: Message, place: int) -> None:
        calls = message.get("tool_calls")
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            call_id = call.get("id") if isinstance(call, dict) else None
            self._callers[str(call_id) if call_id else f"{place}/{number}"] = place
            self._groups[place] = [place]
            self._waiting[place] += 1

    def _answer(self, call_id: object, place: int) -> None:
        caller = self._callers.pop(str(call_id), None)
        if caller is None:
            return
        self._groups[caller].append(place)
        self._waiting[caller] -= 1
        if not self._waiting[caller]:
            del self._groups[caller], self._waiting[caller]

    def _staying(self) -> set[int]:
        waiting = (place for caller in self._callers.values() for place in self._groups[caller])
        return {self._question, *self._system, *waiting}


def _list_gaps(first: int, last: int, staying: list[int]) -> Iterator[PositionSpan]:
    """Yield the parts of a range between the positions that stay."""
    for place in (*staying, last + 1):
        end = min(place - 1, last)
        if place >= first:
            if first <= end:
                yield first, end
            first = place + 1


class ImportedNotes:
    """The notes of an imported session, by position, under one key."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._key = ""
        self._told: dict[int, list[JsonFields]] = {}

    def add(self, place: int, key: str, rows: list[JsonFields]) -> None:
        """Keep the rows that belong to the message at a position."""
        self._key = key
        self._told.setdefault(place, []).extend(rows)

    def write(self, store: ImportTarget) -> Iterator[NoteEvent]:
        """Write the notes that the store does not have; yield a note for each refused one."""
        known = self._known(store) if self._told else {}
        for place, rows in self._told.items():
            if known.get(place) != rows:
                yield from self._write(store, place)

    def _known(self, store: ImportTarget) -> dict[int, object]:
        notes = store.annotations(self._id, key=self._key)
        return {note.seq: note.value for note in notes}

    def _write(self, store: ImportTarget, place: int) -> Iterator[NoteEvent]:
        try:
            store.atomically(partial(self._annotate, place))
        except StoreError as refused:
            text = f"what stands beside position {place} of {self._id!r} is left out: {refused}"
            yield NoteEvent(None, text, broken=True)

    def _annotate(self, place: int, steps: AnySteps) -> None:
        steps.annotate(self._id, place, self._key, self._told[place])


class NewMessage(NamedTuple):
    """A message that the line does not have, with the rows that store it."""

    said: SessionMessage
    rows: list[PreparedMessage]


class FileCompaction(NamedTuple):
    """The ranges that a compaction of a file hides, its summary, and the message it comes after."""

    ranges: list[PositionSpan]
    summary: str | None
    after: int


class FileSession:
    """One session while its file is read.

    Its messages are compared with the stored line up to its end, then appended to it. ``_place`` is
    the last position of the last message, which has ``_width`` positions. ``_moment`` is the latest
    known time. ``_early`` are messages that were prepared before, ``_late`` stored answers with
    costs. ``places`` holds the position
    after each message of the file, ``kept`` the beginnings of sessions that a rewind left.
    ``revision`` is that of the stored session after its last change by the import; it
    ``is_settled`` if importing the file again would change nothing and tell the same, and
    ``has_more`` if the file has compactions of it, or rows beside it.
    """

    def __init__(
        self,
        store: ImportTarget,
        session: Session,
        ahead: EventLookahead,
        elsewhere: ContinuationSearch,
        notes: list[NoteEvent],
        early: PreparedMessages,
        *,
        places: Sequence[int],
        replace: bool,
    ) -> None:
        self._ahead, self._elsewhere, self._early = ahead, elsewhere, early
        self.places = array("q", places)
        self.kept: dict[str, StoredBeginning] = {}
        self._store = store
        self._id = session.id
        self._notes = notes
        self._replace = replace
        self._before = len(places)
        self._sight = HidableRanges()
        self._place, self._width = places[-1] if places else 0, 1
        self._stored = _load_session_messages(store, session, self._place + 1)
        self._head = session.head
        self._is_known = self._place < session.head
        self._moment = session.updated_at
        self.revision, self.is_settled = session.revision, True
        self.has_more = False
        self._count = self._calls = self._appended = 0
        self._digests = KeyNumbers()
        self._batch: list[NewMessage] = []
        self._batch_size = 0
        self._differs_at: int | None = None
        self._spending = RecordedUsage(session.id)
        self._late: list[tuple[StoredMessage, SessionMessage]] = []
        self._beside = ImportedNotes(session.id)
        self._compactions: list[FileCompaction] = []

    def take(self, said: SessionMessage) -> None:
        """Take the next message of the file, which is on the line already or new."""
        self._count += 1
        rows = self._prepared(said)
        if rows:
            self._take(said, rows)
        self.places.append(self._place)
        for place, row in enumerate(rows, self._place - len(rows) + 1):
            self._sight.take(row.message, place)

    def keep_beside(self, event: SideRowsEvent, kind: str) -> None:
        """Keep the rows beside the last message, unless it is not on the line."""
        self.has_more = True
        if self._place and not self._left_alone():
            self._beside.add(self._place, kind, event.rows)

    def compact(self, event: CompactionEvent) -> None:
        """Hide the messages that the program hid, in the end where the line is longer by now."""
        self.has_more = True
        self._flush()
        places = self.places[self._before : self._before + event.through]
        if not places or self._left_alone():
            return
        ranges = self._sight.ranges(max(1, places[0]), places[-1])
        self._compactions += [FileCompaction(ranges, event.summary, self._count)] if ranges else []
        if self._place == self._head:
            self._hide_all()

    def _hide_all(self) -> None:
        """Hide what the compactions so far hide, unless it is hidden or was undone."""
        waiting, self._compactions = self._compactions, []
        known = _find_hidden_end(self._store.compactions(self._id)) if waiting else 0
        for each in waiting:
            if known < each.ranges[-1][1]:
                self._hide(each)

    def _hide(self, compaction: FileCompaction) -> None:
        try:
            self._store.atomically(partial(self._hide_ranges, compaction), now=self._moment)
        except StoreError as refused:
            told = f"a compaction of {self._id!r} after its message {compaction.after} is left out"
            self._tell_once(f"{told}: {refused}")

    def _hide_ranges(self, compaction: FileCompaction, steps: AnySteps) -> None:
        """Hide ranges; the last one gets the summary of all."""
        *others, last = compaction.ranges
        if _find_hidden_end(steps.compactions(self._id)) < last[1]:
            for span in others:
                steps.hide(self._id, *span, None)
            steps.hide(self._id, *last, compaction.summary)

    def _take(self, said: SessionMessage, rows: list[PreparedMessage]) -> None:
        self._calls += sum(len(row.calls) for row in rows)
        if self._left_alone() or self._repeated(rows[-1]):
            return
        self._width = len(rows)
        self._place += self._width
        if self._place <= self._head:
            self._compare(said, rows)
        is_new = self._place > self._head and not self._left_alone()
        if is_new and not self._goes_on(said.message):
            self._add(said, rows)

    def _goes_on(self, message: Message) -> bool:
        """Continue on another session's line that goes on like the file; tell whether one does.

        The search is made once, after the messages that an earlier import stored.
        """
        is_known, self._is_known = self._is_known, False
        place = self._place - self._width
        found = self._elsewhere.find(self._id, place, message) if is_known else None
        if found:
            self._move(self._switched(found, place))
        return found is not None

    @property
    def is_as_long(self) -> bool:
        """Tell whether the file has the whole line, and the line has all messages of the file."""
        return not self._left_alone() and self._place >= self._head

    def finish(self) -> ImportedSession:
        """Append the remaining messages; return the report of the session."""
        if self._place < self._head and not self._left_alone():
            self._take_back()
        self._flush()
        if self.is_as_long:
            self._hide_all()
        self._notes += self._beside.write(self._store)
        return ImportedSession(
            self._id, self._count, self._appended, self._head, self._calls, self._differs_at
        )

    def _left_alone(self) -> bool:
        return self._differs_at is not None and not self._replace

    def _prepared(self, said: SessionMessage) -> list[PreparedMessage]:
        """Return the rows that store a message; none if it is refused."""
        try:
            _, rows = self._early.pop(id(said), (said, None))
            return prepare_file_message(said) if rows is None else rows
        except InvalidMessage as refused:
            key = f" (key {refused.key!r})" if refused.key else ""
            self._note(f"is left out, it cannot be stored: {refused.problem}{key}")
            return []

    def _repeated(self, prepared: PreparedMessage) -> bool:
        """Tell whether an earlier message of the file has the same id: the store keeps only one."""
        message_id = prepared.columns.message_id
        if message_id is None:
            return False
        told = int.from_bytes(prepared.digest[:DIGEST_PREFIX_BYTES])
        earlier = self._digests.get(message_id)
        if earlier is None:
            self._digests[message_id] = told
            return False
        first = "an earlier message"
        if earlier != told:
            first += ", which says something else,"
        self._note(f"is left out: {first} has its id, {message_id!r:.80}")
        return True

    def _compare(self, said: SessionMessage, rows: list[PreparedMessage]) -> None:
        """Compare a message of the file with the stored message at its position."""
        stored = next(self._stored, None)
        if stored is None:
            self._part()
        elif is_redacted(stored.message):
            return
        elif _is_stored_as(rows[-1], stored):
            if said.spent:
                self._charge(stored, said)
        elif _says_the_same(stored.message, said.message):
            self._charge(stored._replace(message=said.message), said)
        else:
            self._settle(stored.message, said.message)

    def _charge(self, stored: StoredMessage, said: SessionMessage) -> None:
        """Keep a stored answer whose cost the file may tell only since it has grown."""
        self._late.append((stored, said))
        if len(self._late) >= BATCH_MESSAGES:
            self._flush()

    def _settle(self, stored: Message, message: Message) -> None:
        """Handle a stored message that differs from the message of the file."""
        early = is_answer_beginning(stored, message) or is_result_of_call(stored, message)
        if early and self._only_results_follow():
            self._take_again()
        else:
            self._place -= self._width
            taken_back = self._take_back(message)
            self._place += self._width
            if not taken_back:
                self._part()

    def _only_results_follow(self) -> bool:
        return all(has_only_tool_results(stored.message) for stored in self._stored)

    def _take_again(self) -> None:
        """Rewind to the position before an answer that was incomplete at its import."""
        self._rewind()
        text = "was still being written when it was imported, it is now whole"
        self._tell_once(f"message {self._count} of {self._id!r} {text}")

    def _take_back(self, message: Message | None = None) -> bool:
        """Rewind to the last message if the file shows that all messages after it were taken back.

        Return whether it does. The messages that the rewind leaves are the beginning of other
        sessions. If another session has the ``message`` that comes instead, the line continues
        with the messages of that session.
        """
        stretches = self._stretches()
        line = [each.message for each in self._store.messages(self._id)] if stretches else []
        if not any(_has_stretch_at_end(each, line) for each in stretches.values()):
            return False
        branch = self._store.session(self._id).branch
        for name, (after, messages) in stretches.items():
            same = count_equal_pairs(is_same_as_stored, zip(line[after:], messages, strict=False))
            self.kept[name] = StoredBeginning(self._id, branch, after + same)
        self._move(self._gone_back(message))
        self._tell_once(
            f"what followed position {self._place} of {self._id!r} was taken back;"
            " it is rewound there"
        )
        return True

    def _gone_back(self, message: Message | None) -> Session:
        """Return the session after the rewind, or on a line that has the new message already."""
        place = self._place
        found = message and self._elsewhere.find(self._id, place, message)
        if not found:
            return self._store.rewind(self._id, to=place, now=self._moment)
        return self._switched(found, place)

    def _switched(self, found: StoredBeginning, place: int) -> Session:
        """Return the session on a found line; its first message after the position is taken."""
        name, branch, end = found
        session = self._store.switch(self._id, branch, end, of=name, now=self._moment)
        self._stored = _load_session_messages(self._store, session, place + self._width + 1)
        return session

    def _stretches(self) -> dict[str, TakenBackMessages]:
        """Return the messages taken back so far, with their positions in the store."""
        found = self._ahead.stretches(self._id)
        places = [0, *self.places]
        return {
            name: each._replace(after=places[each.after])
            for name, each in found.items()
            if each.after < len(places)
        }

    def _part(self) -> None:
        """Replace the line from its first difference on, or leave it unchanged; note which."""
        self._differs_at = self._place - self._width + 1
        where = f"from position {self._differs_at} on"
        back = f"`convostore undo {self._id}` brings the old line back"
        if self._replace:
            self._rewind()
            text = f"differed {where} and was replaced; {back}"
        else:
            text = (
                f"differs from the file {where} and was left as it is; "
                f"--replace rewinds it there and appends the file's version, then {back}"
            )
        self._tell_once(f"session {self._id!r} {text}", broken=True)

    def _rewind(self) -> None:
        """Rewind to the position before the last message."""
        place = self._place - self._width
        self._move(self._store.rewind(self._id, to=place, now=self._moment))

    def _move(self, session: Session) -> None:
        """Take the head and the revision of the session after a move of its head."""
        self._head, self.revision = session.head, session.revision

    def _tell_once(self, text: str, *, broken: bool = False) -> None:
        """Note what happened in this import, and would not happen in the next one again."""
        self.is_settled = False
        self._notes.append(NoteEvent(None, text, broken=broken))

    def _add(self, said: SessionMessage, rows: list[PreparedMessage]) -> None:
        self._batch.append(NewMessage(said, rows))
        self._moment = max(self._moment, find_said_time(said) or 0)
        self._batch_size += sum(map(_measure_row_size, rows))
        if len(self._batch) >= BATCH_MESSAGES or self._batch_size >= BATCH_SIZE:
            self._flush()

    def _flush(self) -> None:
        if self._late:
            self._store.atomically(self._record_late)
        if self._batch:
            self._head = self._store.atomically(self._append)
            self._appended += len(self._batch)
        self._batch, self._batch_size, self._late = [], 0, []

    def _record_late(self, steps: AnySteps) -> None:
        """Record the usage of stored answers, as far as it was not known when they were stored."""
        is_ours = steps.session(self._id).revision == self.revision
        self._spending.record(steps, self._late)
        if is_ours:
            self.revision = steps.session(self._id).revision

    def _append(self, steps: AnySteps) -> int:
        """Append a batch and record the usage of its answers; return the new head."""
        head = self._head
        self.is_settled &= steps.session(self._id).revision == self.revision
        for moment, run in groupby(self._batch, attrgetter("said.moment")):
            told, rows = zip(*run, strict=True)
            batch = build_batch([*chain(*rows)], limit_to_now(moment) or self._moment)
            # the rows prepared for the comparison are appended as they are
            stored = steps.append(self._id, cast("Any", batch), expected_head=head)
            self._spending.record(steps, zip(stored, told, strict=True))
            head = stored[-1].seq
        self.revision = steps.session(self._id).revision
        return head

    def _note(self, text: str) -> None:
        told = f"message {self._count} of {self._id!r} {text}"
        self._notes.append(NoteEvent(None, told, broken=True))


def _find_hidden_end(known: list[Compaction]) -> int:
    """Return the last position that a compaction of a line hides, or did until it was undone."""
    return max((each.hidden[1] for each in known if each.hidden), default=0)


def _measure_row_size(row: PreparedMessage) -> int:
    arguments = (call.arguments for call in row.calls)
    texts = (row.columns.content, row.columns.extra, *arguments)
    return sum(len(text) for text in texts if text)


def _says_the_same(stored: Message, message: Message) -> bool:
    """Tell whether messages differ at most in what their file says beyond them."""
    return remove_extra_keys(stored) == remove_extra_keys(message)


def _is_stored_as(row: PreparedMessage, stored: StoredMessage) -> bool:
    """Tell by its last row whether a message equals the stored one."""
    return stored.digest == digest_row(row.digest, stored.stored_at, row.wire_format)


def _has_stretch_at_end(stretch: TakenBackMessages, line: list[Message]) -> bool:
    """Tell whether a line ends with the beginning of a stretch that was taken back."""
    stored = line[stretch.after :]
    pairs = zip(stored, stretch.messages, strict=False)
    same = count_equal_pairs(
        lambda one, other: is_same_as_stored(one, other) or is_answer_beginning(one, other), pairs
    )
    return 0 < len(stored) == same


def _load_session_messages(
    store: ImportTarget, session: Session, start: int
) -> Iterator[StoredMessage]:
    """Return the messages of a session, read one after another."""
    return chain.from_iterable(store.pages(session.id, start, session.head, size=MESSAGE_PAGE_SIZE))
