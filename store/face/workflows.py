"""Workflows on sessions: they take several transactions, or do most of their work in none.

Waiting for a session to change is polling: a pooled connection is told of no changes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, overload

from .. import context as contexts
from ..clock import Now
from ..database import Database, pause_gc
from ..errors import InvalidValue, quote_value
from ..records import Session
from .calls import Call
from .operations import LongOperations
from .streaming import SAVE_EVERY_BYTES, SAVE_EVERY_MS, Streaming, StreamRequest

if TYPE_CHECKING:
    from ..context import Context, Tools
    from ..messages import GivenMessage
    from ..policy import Policy
    from ..records import Erasure

PAUSE_AT_FILE = 0.02
"""Seconds between two looks at a file; a look takes some microseconds."""
PAUSE_AT_SERVER = 0.2
"""Seconds between two looks at a server; a look goes over a network."""
LONGEST_WAIT = 10**9
"""The longest wait, in seconds."""


class Workflows(LongOperations):
    """The workflows on sessions."""

    _database: Database
    _requests: contexts.Requests

    def wait(self, session_id: str, revision: str | None, timeout: float = 30.0) -> Session | None:
        """Wait until a session has another revision and return it; None after ``timeout`` seconds.

        Looks several times a second, and reads from a file only after somebody has written to it.
        Raises SessionNotFound, also if the session is deleted meanwhile, and InvalidValue.
        """
        watch = self._watch(session_id, revision, timeout)
        while (changed := watch.look()) is None and watch.has_time():
            time.sleep(watch.pause)
        return changed

    def _watch(self, session_id: str, revision: str | None, timeout: float) -> RevisionWatch:
        return RevisionWatch(self._database, self.session, session_id, revision, timeout)

    def streaming(
        self,
        session_id: str,
        message: GivenMessage,
        *,
        expected: str | None = None,
        every_bytes: int = SAVE_EVERY_BYTES,
        every_ms: int = SAVE_EVERY_MS,
        format: str | None = None,  # noqa: A002 - the public name
    ) -> Streaming:
        """Stream an answer: ``with store.streaming(id, message) as answer: answer.write(text)``.

        ``message`` is the beginning of the answer: its role, maybe more; ``format`` names the
        format of the whole, as in `append`. The text is saved beside the line, as a draft, after
        every ``every_bytes`` bytes of it (UTF-8), and at the latest with the first text that comes
        ``every_ms`` ms after the last save: a killed process loses less than that.

        Leaving the ``with`` appends the message and deletes the draft, in one change. After an
        exception the draft stays, with all of the text. It also stays, and Conflict is raised, if
        the head has moved since the beginning, or the revision ``expected`` is not the session's.
        Entering raises SessionNotFound, Conflict, InvalidMessage, InvalidValue; leaving
        DraftNotFound, too.
        """
        asked = StreamRequest(self, session_id, message, expected, every_bytes, every_ms, format)
        return Streaming(asked)

    @overload
    def delete_session(
        self,
        session_id: str,
        /,
        *,
        purge: bool = False,
        expected: str | None = None,
        now: Now = None,
    ) -> Erasure: ...
    @overload
    def delete_session(
        self, *session_ids: str, purge: bool = False, now: Now = None
    ) -> list[Erasure]: ...
    def delete_session(
        self,
        *session_ids: str,
        purge: bool = False,
        expected: str | None = None,
        now: Now = None,
    ) -> Erasure | list[Erasure]:
        """Erase a session for good: its messages and all that was derived from them.

        It is gone for every reader at once; its rows are erased between other writers, in slices of
        some milliseconds. Messages on the lines of other sessions stay; the erasure itself is
        recorded. The `Erasure` says what the file may still hold until a purge; ``purge`` purges at
        once, which a face of one owner's sessions cannot. With several ids, each is erased in a
        transaction of its own, and a list of erasures is returned. ``expected`` is the revision
        that a single session must have (None: any). Raises SessionNotFound for an unknown id,
        Conflict. If anything is raised, nothing was erased. If one of several fails later, the
        erasures done so far are returned.
        """
        if expected is not None and len(session_ids) != 1:
            raise InvalidValue(
                "a revision belongs to one session; with it, delete sessions one by one"
            )
        erased = self._erase(session_ids, expected, self._moment(now), purge=purge)
        return erased[0] if len(session_ids) == 1 else erased

    def _erase(
        self,
        session_ids: tuple[str, ...],
        expected: str | None,
        moment: int,
        *,
        purge: bool,
    ) -> list[Erasure]:
        """Erase sessions, and purge the file if ``purge`` is true."""
        raise NotImplementedError

    def context(
        self,
        session_id: str,
        system: str | None = None,
        tools: Tools | None = None,
        user_input: str | None = None,
        todo_recap: str | None = None,
        root: str | os.PathLike[str] | None = None,
        policy: Policy | None = None,
        format: str = "openai",  # noqa: A002 - the public name
        now: Now = None,
        *,
        at: int | None = None,
        cache_markers: bool = False,
    ) -> Context:
        """Return a whole request: prompts, the project's rules, the view, the input and open todos.

        ``tools`` is a text, or definitions that are sent beside the messages; ``user_input`` the
        input that is not stored yet (None: the last user message is the current input);
        ``todo_recap`` the open todos (None: those of the last todo list, "": none); ``root`` the
        project's folder (None: the session's), whose ``CODE_LAW.md`` is read anew; ``policy`` that
        of the view, for a coding agent ``Policy.named("agent")`` (None: ``Policy.named("turns")``);
        ``format`` a format of a view, or ``react`` for the whole as one text. With
        ``cache_markers`` the ends of layers are marked for the prompt cache of a provider that asks
        for it, which is Anthropic: at most four blocks, or three if the turn is short. Raises
        SessionNotFound, PositionOutOfRange, InvalidValue, InvalidPolicy.
        """
        asked = contexts.request.check_inputs(system, tools, user_input, todo_recap, policy)
        options = {"recap": todo_recap is None, "root": root, "at": at, "format": format}
        options["now"] = self._moment(now)
        gather = Call(
            contexts.request.gather_parts, (session_id, asked.policy, user_input), options
        )
        gathered = self._read(gather)
        law = contexts.code_law(gathered.project_root)
        with pause_gc(len(gathered.view.messages)):
            request = contexts.request.assemble_request(
                asked, gathered, law, format=format, marked=cache_markers
            )
            return self._requests.remember(session_id, request, gathered.since)


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
            raise InvalidValue(f"revision must be that of a session, not {quote_value(revision)}")
        if not isinstance(timeout, int | float) or not 0 <= timeout <= LONGEST_WAIT:
            raise InvalidValue(
                f"timeout must be in seconds, from 0 to {LONGEST_WAIT:,},"
                f" not {quote_value(timeout)}"
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
