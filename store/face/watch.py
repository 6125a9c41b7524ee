"""Waiting for a session to change, by polling: a pooled connection is told of no changes."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..database import Database
from ..errors import InvalidValue, quote_value
from ..records import Session

PAUSE_AT_FILE = 0.02
"""Seconds between two looks at a file; a look takes some microseconds."""
PAUSE_AT_SERVER = 0.2
"""Seconds between two looks at a server; a look goes over a network."""
LONGEST_WAIT = 10**9
"""The longest wait, in seconds."""


class RevisionWatch:
    """Looks at a session until its revision has changed, or the time is over."""

    def __init__(
        self,
        database: Database,
        session: Callable[[str], Session],
        session_id: str,
        revision: str | None,
        timeout: float,
    ) -> None:
        if revision is not None and not isinstance(revision, str):
            raise InvalidValue(f"revision is a session's, not {quote_value(revision)}")
        if not isinstance(timeout, int | float) or not 0 <= timeout <= LONGEST_WAIT:
            raise InvalidValue(
                f"timeout is in seconds, from 0 to {LONGEST_WAIT:,}, not {quote_value(timeout)}"
            )
        self._database, self._session = database, session
        self._session_id, self._revision = session_id, revision
        self._deadline = time.monotonic() + timeout
        self._pause = PAUSE_AT_FILE if database.path else PAUSE_AT_SERVER
        self._seen: tuple[object, ...] | None = None

    def look(self) -> Session | None:
        """Return the session if it has changed, else None."""
        seen = self._database.seen()
        if seen is not None and seen == self._seen:
            return None
        self._seen = seen
        found = self._session(self._session_id)
        return found if found.revision != self._revision else None

    def has_time(self) -> bool:
        """Tell whether there is time for another look."""
        return time.monotonic() < self._deadline

    @property
    def pause(self) -> float:
        """Seconds until the next look; the last look is at the deadline."""
        return max(0.0, min(self._pause, self._deadline - time.monotonic()))
