"""The errors a host application can meet: one base, children where a caller would act differently.

Every message names the problem, the place and the remedy. Errors of the database driver are chained
with ``from``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from traceback import walk_tb
from typing import ClassVar, TypeVar

__all__ = [
    "CompactionError",
    "Conflict",
    "ConnectionLost",
    "Damaged",
    "DraftBusy",
    "DraftEnded",
    "DraftNotFound",
    "HeadMoved",
    "InvalidMessage",
    "InvalidPolicy",
    "InvalidValue",
    "LimitExceeded",
    "MaxCompactionReachedError",
    "MessageNotFound",
    "NotAStore",
    "NothingToUndo",
    "PositionOutOfRange",
    "QueryRefused",
    "ReadOnly",
    "SchemaTooNew",
    "SessionExists",
    "SessionNotFound",
    "StoreBusy",
    "StoreClosed",
    "StoreError",
    "StoreForked",
    "StoreFull",
    "StoreMoved",
    "SummaryGenerationError",
    "SummaryTimedOut",
    "TokenCountingError",
    "Unavailable",
    "UnknownTranscript",
    "check_choice",
    "check_readable_to_end",
    "correct_step_errors",
    "describe_read_error",
    "quote_value",
]

ChoiceT = TypeVar("ChoiceT", bound=str)

TOO_MANY_FILES = (
    "the process has as many files open as it may; close stores that are no longer used, "
    "or raise the limit (ulimit -n)"
)


def quote_value(value: object) -> str:
    """Return a value as an error quotes it: its repr, cut off; its type if it has none.

    Whole numbers of thousands of digits have none, nor have lists nested too deeply.
    """
    try:
        return f"{value!r:.80}"
    except Exception:  # noqa: BLE001 - whatever a class of the host's raises
        return f"a value of the type {type(value).__name__}"


def check_progress(progress: object) -> None:
    """Raise InvalidValue for a callback of progress that is neither a function nor None."""
    if progress is not None and not callable(progress):
        raise InvalidValue(f"progress must be a function, not {quote_value(progress)}")


def check_readable_to_end(path: str | os.PathLike[str]) -> None:
    """Refuse to read a pipe or a device, which may never end. Raises OSError."""
    mode = Path(path).stat().st_mode
    if not (S_ISREG(mode) or S_ISDIR(mode)):
        raise OSError("it is a pipe or a device, which may never end")


VERIFY_HINT = "the store is damaged; run `convostore verify`"
"""The end of messages about a damaged row."""


def describe_origin(error: BaseException) -> str:
    """Return the type of an exception and the place that raised it, without its message."""
    frames = list(walk_tb(error.__traceback__))
    kind = type(error).__name__
    if not frames:
        return kind
    frame, line = frames[-1]
    return f"{kind} at {frame.f_globals.get('__name__', '?')}:{line}"


class StoreError(Exception):
    """Report that an operation of the store could not be done.

    The text names the problem and the remedy. ``status`` is the status of an HTTP response that
    reports it, ``retry`` tells whether the same call may be repeated as it is.
    """

    status: ClassVar[int] = 500
    retry: ClassVar[bool] = False

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the error by its text and attributes, not by its constructor's arguments."""
        return _rebuild_error, (type(self), self.args, self.__dict__)


def _rebuild_error(
    kind: type[StoreError], args: tuple[object, ...], attributes: dict[str, object]
) -> StoreError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


@contextmanager
def correct_step_errors() -> Iterator[None]:
    """Keep the errors of an operation of several transactions true.

    Data written by its earlier transactions stays, so nothing *more* was written.
    """
    try:
        yield
    except StoreError as error:
        error.args = tuple(
            told.replace("nothing was written", "nothing more was written")
            if isinstance(told, str)
            else told
            for told in error.args
        )
        raise


def explain_open_failure(error: OSError) -> str:
    """Return why a file cannot be opened, and what to do."""
    if is_file_limit_reached(error):
        return TOO_MANY_FILES
    if error.errno == errno.ELOOP:
        return "it is a link, which is not followed; remove it"
    return f"{error.strerror or error}; check its and its folder's permissions"


def describe_read_error(error: Exception) -> str:
    """Return the text of an error of reading a file, without the file, numbers and codecs."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def is_file_limit_reached(error: OSError) -> bool:
    """Tell whether the process, or the machine, has reached its limit of open files."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


def build_open_error(error: OSError) -> StoreError:
    """Return the error for a file that the library needs and cannot open."""
    named = f" {error.filename}" if error.filename else ""
    return StoreError(f"cannot open the file{named}: {explain_open_failure(error)}")


def build_write_error(told: str, error: OSError) -> StoreError:
    """Return the error for a file that cannot be made or written; ``told`` names it."""
    is_refused = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    return (ReadOnly if is_refused else StoreError)(f"{told}: {explain_open_failure(error)}")


class SessionNotFound(StoreError, LookupError):
    """Report that no session has the given id."""

    status = 404

    def __init__(self, session_id: object) -> None:
        told = f"there is no session {quote_value(session_id)} in this store"
        super().__init__(told if isinstance(session_id, str) else f"{told}; give its id, a text")
        self.session_id = session_id


class MessageNotFound(StoreError, LookupError):
    """Report that no message of a session's line has the given id."""

    status = 404

    def __init__(self, session_id: str, message_id: str) -> None:
        super().__init__(
            f"session {session_id!r} has no message of the id {message_id!r:.80} on its line; "
            "`find` looks for it in other sessions"
        )
        self.session_id, self.message_id = session_id, message_id


class DraftNotFound(StoreError, LookupError):
    """Report that there is no such draft: it was finished, discarded or erased with its session."""

    status = 404

    def __init__(self, draft: object) -> None:
        super().__init__(
            f"there is no draft {quote_value(draft)} in this store; `drafts` lists them"
        )
        self.draft = draft


class SessionExists(StoreError):
    """Report that a new session's id is already taken."""

    status = 409

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id!r} exists already; append to it, or choose another id"
        )
        self.session_id = session_id


class Conflict(StoreError):
    """Report that a session is not as the caller knew it; nothing was written.

    ``expected`` is the value given by the caller, ``found`` the value in the store: two revisions,
    or two heads.
    """

    status = 409

    def __init__(
        self,
        session_id: str,
        expected: object,
        found: object,
        what: str = "revision",
    ) -> None:
        super().__init__(
            f"session {session_id!r}: the {what} was expected at {quote_value(expected)}, it is at "
            f"{found!r}; read on and try again"
        )
        self.session_id, self.expected, self.found = session_id, expected, found


class HeadMoved(Conflict):
    """Report that the session's head is not where the caller expected it; nothing was written."""

    def __init__(self, session_id: str, expected: int, head: int) -> None:
        super().__init__(session_id, expected, head, "head")
        self.head = head


class DraftBusy(Conflict):
    """Report that an answer of the session is under way: a process still writes its draft.

    Nothing was written. ``draft`` is the draft's id, ``writer`` names the process.
    """

    def __init__(self, session_id: str, draft: str, writer: str | None) -> None:
        StoreError.__init__(
            self,
            f"session {session_id!r}: {writer} still writes the draft {draft!r}; nothing was "
            "written; `follow` waits for its end, `finish_draft` with force=True ends it",
        )
        self.session_id, self.draft, self.writer = session_id, draft, writer
        self.expected, self.found = None, draft


class DraftEnded(Conflict, DraftNotFound):
    """Report that somebody finished or discarded the draft that a stream was writing.

    Nothing more of the answer was stored; `answer.message` still has all of it.
    """

    def __init__(self, session_id: str, draft: str) -> None:
        StoreError.__init__(
            self,
            f"session {session_id!r}: the draft {draft!r} was finished or discarded while its "
            "answer was streamed; nothing more of it was stored; `message` of the stream has it",
        )
        self.session_id, self.draft = session_id, draft
        self.expected, self.found = draft, None


class PositionOutOfRange(StoreError, ValueError):
    """Report a position that is not on the session's line."""

    status = 400

    def __init__(self, session_id: str, position: object, head: int) -> None:
        super().__init__(
            f"session {session_id!r} has positions 0 to {head}; "
            f"{quote_value(position)} is not one of them"
        )
        self.session_id, self.position, self.head = session_id, position, head


class InvalidMessage(StoreError, ValueError):
    """Report a message that cannot be stored.

    ``index`` in the batch, ``key`` in the message (None: the whole).
    """

    status = 400

    def __init__(self, index: int, key: str | None, problem: str) -> None:
        where = f"message {index}" if key is None else f"message {index}, key {key!r}"
        super().__init__(f"{where}: {problem}; nothing of the batch was stored")
        self.index, self.key, self.problem = index, key, problem


class InvalidValue(StoreError, ValueError):
    """Report an argument that an operation cannot use."""

    status = 400


def check_choice(choices: Iterable[ChoiceT], name: str, given: object) -> ChoiceT:
    """Return the given one of some texts. Raises InvalidValue for any other value."""
    known = {str(each): each for each in choices}
    if not isinstance(given, str) or given not in known:
        raise InvalidValue(f"{name} is one of {', '.join(known)}, not {quote_value(given)}")
    return known[given]


class InvalidPolicy(StoreError, ValueError):
    """Report policy fields that do not exist or have impossible values."""

    status = 400


class NothingToUndo(StoreError):
    """Report that a session has no rewind left to undo."""

    status = 409


class NotAStore(StoreError):
    """Report that a database holds something other than a store; it was not touched."""


class SchemaTooNew(StoreError):
    """Report that a newer release made this store; it was not touched."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"the store has schema {found}, this release knows schemas up to {known}; "
            "install a newer convostore"
        )
        self.found, self.known = found, known


class StoreBusy(StoreError):
    """Report that another writer held the store until the deadline.

    The transaction wrote nothing; it is safe to try again.
    """

    status = 423
    retry = True


class StoreFull(StoreError):
    """Report that the disk has no room.

    The transaction wrote nothing; it is safe to try again after making room.
    """

    status = 507


class StoreMoved(StoreError):
    """Report that the database file was moved, replaced, removed or hard-linked while in use.

    The transaction wrote nothing.
    """


class StoreForked(StoreError):
    """Report that the process was forked inside an operation.

    The child cannot use the file; a new process can.
    """


class Unavailable(StoreError):
    """Report that no connection to the server could be made: it is down, starting, or has no room.

    Nothing was written; the same call may be repeated.
    """

    status = 503
    retry = True


class ConnectionLost(StoreError):
    """Report that an established connection to the server broke.

    The text says whether the commit may have succeeded. If so, repeat only appends of messages with
    an ``id``, which are not stored twice.
    """

    status = 503


class ReadOnly(StoreError):
    """Report that the store may be read and not written.

    The file or a file beside it is not writable, or the server takes no writes. Nothing was
    written.
    """

    status = 403


class Damaged(StoreError):
    """Report that a row holds something that the store never writes.

    The text says where; ``convostore verify`` lists all damage.
    """


class StoreClosed(StoreError):
    """Report that the store was closed before the operation."""


class QueryRefused(StoreError):
    """Report that a query of the read-only console was refused, or took too long or too much."""

    status = 400


class UnknownTranscript(StoreError, ValueError):
    """Report that a file is no transcript of a known kind.

    ``program`` is the program that wrote it, if known: its transcripts may not be supported.
    """

    status = 400

    def __init__(self, problem: str, program: str | None = None) -> None:
        super().__init__(problem)
        self.program = program


class LimitExceeded(StoreError):
    """Report that a file would take more than its import may.

    ``limit`` names the limit, ``allowed`` is its value. Data stored before stays.
    """

    status = 413

    def __init__(self, limit: str, allowed: float, problem: str) -> None:
        super().__init__(f"{problem}; {limit} allows {allowed:,}")
        self.limit, self.allowed = limit, allowed


class CompactionError(StoreError):
    """Report that a compaction could not be made; the session is unchanged.

    ``session_id`` and ``reason`` name the session and the reason of the compaction, ``can_retry``
    tells whether the same call may succeed later.
    """

    def __init__(
        self,
        problem: str,
        *,
        session_id: str | None = None,
        reason: str | None = None,
        can_retry: bool = False,
    ) -> None:
        super().__init__(problem)
        self.session_id, self.reason, self.can_retry = session_id, reason, can_retry

    def response(self) -> dict[str, object]:
        """Return the error as a JSON object: its name, message and details."""
        details = {"sessionId": self.session_id, "reason": self.reason, "canRetry": self.can_retry}
        return {"name": type(self).__name__, "message": str(self), "details": details}


class SummaryGenerationError(CompactionError):
    """Report that a summarizer gave no usable summary.

    The text is the cause, for a foreign exception with all its causes; nothing was changed.
    ``origin`` names the type and place of such an exception, without its message.
    """

    origin: str | None = None


class SummaryTimedOut(SummaryGenerationError):
    """Report that a summarizer took longer than its limit."""


class MaxCompactionReachedError(CompactionError):
    """Report that no more compactions are tried: too many in a row left the view at its trigger."""


class TokenCountingError(StoreError):
    """Report that tokens cannot be counted exactly.

    They are estimated until this changes.
    """
