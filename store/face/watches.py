"""Looking at a store until something has changed.

It is polling. A server tells of changes, but that is a hint, and not every server does; and that a
process has died is written nowhere.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from .. import history
from ..database import Database
from ..errors import DraftNotFound, InvalidValue, SessionNotFound, StoreError, quote_value
from .calls import Call

if TYPE_CHECKING:
    from ..records import Draft, Session

PAUSE_AT_FILE = 0.02
"""Seconds between two looks at a file; a look takes some microseconds."""
PAUSE_AT_SERVER = 0.2
"""Seconds between two looks at a server that tells of no changes; a look goes over a network."""
LONGEST_PAUSE = 5.0
"""Seconds between two looks at a server that tells of changes."""
LONGEST_WAIT = 10**9
"""The longest wait, in seconds."""
PULSE_PAUSE = 1.0
"""Seconds after which a draft may have died although nobody has written to the file."""
MOST_ANSWER_MESSAGES = 16
"""The most messages after a draft's head among which the rest of its text is looked for."""


class ChangeWatch:
    """Tells whether a store may have changed since the last look; ``pulses`` change by themselves.

    ``find_tree`` returns the tree of the watched session, once it is known.
    """

    def __init__(
        self, database: Database, find_tree: Callable[[], int | None], *, pulses: bool
    ) -> None:
        self._database, self._find_tree, self._watches_pulses = database, find_tree, pulses
        self._seen: tuple[object, ...] | None = None
        self._looked_at = 0.0
        self._tree_id: int | None = None
        self._wake: Callable[[], None] | None = None
        self._is_heard = False

    @contextmanager
    def woken_by(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call ``wake`` within, from any thread, when a look is worth it."""
        self._wake = wake
        try:
            yield
        finally:
            self._wake = None
            if self._tree_id is not None and self._database.listener:
                self._database.listener.remove(self._tree_id, wake)

    def may_have_happened(self) -> bool:
        """Tell whether it is worth a look."""
        seen, now = self._database.seen(), time.monotonic()
        is_pulse_due = self._watches_pulses and now - self._looked_at >= PULSE_PAUSE
        if seen is not None and seen == self._seen and not is_pulse_due:
            return False
        self._seen, self._looked_at = seen, now
        self._is_heard = self._listen()
        return True

    def _listen(self) -> bool:
        """Tell whether each change from now on will be heard."""
        listener = self._database.listener
        if listener is None or self._wake is None:
            return False
        if self._tree_id is None:
            self._tree_id = self._find_tree()
            if self._tree_id is None:
                return False
            listener.add(self._tree_id, self._wake)
        return listener.hears(self._tree_id)

    @property
    def pause(self) -> float:
        """Seconds until the next look, if nobody wakes it before."""
        if self._database.path:
            return PAUSE_AT_FILE
        if not self._is_heard:
            return PAUSE_AT_SERVER
        return PULSE_PAUSE if self._watches_pulses else LONGEST_PAUSE


class RevisionWatch:
    """Looks at a session until its revision has changed, or the time is over.

    ``drafts`` returns the state of its drafts, if a change of that is waited for, too.
    """

    def __init__(
        self,
        database: Database,
        session_id: str,
        session: Callable[[], Session],
        revision: str | None,
        timeout: float,
        drafts: Callable[[], object] | None,
    ) -> None:
        if revision is not None and not isinstance(revision, str):
            raise InvalidValue(f"revision must be that of a session, not {quote_value(revision)}")
        if not isinstance(timeout, int | float) or not 0 <= timeout <= LONGEST_WAIT:
            raise InvalidValue(
                f"timeout must be in seconds, from 0 to {LONGEST_WAIT:,},"
                f" not {quote_value(timeout)}"
            )
        self._session, self._revision, self._drafts = session, revision, drafts
        self._deadline = time.monotonic() + timeout
        self.changes = ChangeWatch(
            database, lambda: database.cache.trees.get(session_id), pulses=drafts is not None
        )
        self._known: object = None

    def look(self) -> Session | None:
        """Return the session if it has changed, else None."""
        if not self.changes.may_have_happened():
            return None
        found = self._session()
        if found.revision != self._revision:
            return found
        if self._drafts is not None:
            states = self._drafts()
            if self._known is not None and states != self._known:
                return found
            self._known = states
        return None

    def has_time(self) -> bool:
        """Tell whether there is time for another look."""
        return time.monotonic() < self._deadline

    @property
    def pause(self) -> float:
        """Seconds until the next look; the last look is at the deadline."""
        return max(0.0, min(self.changes.pause, self._deadline - time.monotonic()))


class DraftWatch:
    """Looks for new text of a draft until it has ended or died.

    Raises DraftNotFound if there is no such draft.
    """

    def __init__(
        self, database: Database, read: Callable[[Call[Any]], Any], draft: str | Draft, key: str
    ) -> None:
        if not isinstance(key, str):
            raise InvalidValue(f"key must be that of a text of the message, not {quote_value(key)}")
        self.changes = ChangeWatch(database, self._get_tree, pulses=True)
        self._read, self._draft, self._key = read, draft, key
        self._is_over = False
        self._found: history.drafts.DraftProgress | None = None
        self._new = self._load_texts()
        self._sent = ""

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        return 0.0 if self._is_over else self.changes.pause

    def _get_tree(self) -> int | None:
        return self._found.tree_id if self._found else None

    def iterate_texts(self) -> Iterator[str]:
        """Yield all texts, and wait for those to come."""
        alarm = threading.Event()
        with self.changes.woken_by(alarm.set):
            while (texts := self.look()) is not None:
                yield from texts
                alarm.wait(self.pause)
                alarm.clear()

    def look(self) -> list[str] | None:
        """Return the texts that have come since the last look; None once there are no more."""
        texts, self._new = self._new, []
        if not texts:
            if self._is_over:
                return None
            if self.changes.may_have_happened():
                texts = self._load_texts()
        self._sent += "".join(texts)
        return texts

    def _load_texts(self) -> list[str]:
        """Return the texts after those that are known; at the end those of the message."""
        known = self._found
        place = (self._draft, known.last if known else 0)
        try:
            found = self._read(Call(history.drafts.load_draft_progress, place, {"owner": None}))
        except (DraftNotFound, SessionNotFound):
            if known is None:
                raise
            self._is_over = True
            return self._load_rest(known)
        self._found, self._is_over = found, not found.live
        begun = "" if known else found.begun.get(self._key)
        texts = [each.text for each in found.texts if each.key == self._key]
        return [begun, *texts] if begun and isinstance(begun, str) else texts

    def _load_rest(self, last: history.drafts.DraftProgress) -> list[str]:
        """Return the end of the text, which was stored with the message only."""
        places = (last.session_id, last.head + 1, last.head + MOST_ANSWER_MESSAGES)
        options = {"branch": last.branch}
        whole, sent = "", self._sent
        from .. import formats  # only the last look needs them

        with suppress(StoreError):
            stored = self._read(Call(history.raw_messages.load_session_messages, places, options))
            answer = takewhile(
                lambda each: each.get("role") != "user", (each.message for each in stored)
            )
            if self._key == "content":
                whole = "".join(formats.render_draft_text(each, None) for each in answer)
            else:
                whole = "".join(str(each.get(self._key) or "") for each in answer)
        return [whole[len(sent) :]] if whole.startswith(sent) and len(whole) > len(sent) else []
