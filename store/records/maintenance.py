"""What was taken away for good, copied and checked."""

from __future__ import annotations

from typing import NamedTuple


class Erasure(NamedTuple):
    """What a deletion removed.

    ``kept`` messages stay because other sessions' lines run through them.

    ``purged`` tells whether a purge has written the file anew since, so that no freed byte is left
    in it; on servers it stays False, because nothing there tells what they still hold. ``copies``
    are the paths of the copies of the store that may hold the bytes still. ``finished`` is False
    while rows that nobody can reach any more wait to be erased: the next opening, deletion or purge
    goes on with them.
    """

    session_id: str
    messages: int
    kept: int
    purged: bool
    copies: tuple[str, ...] = ()
    finished: bool = True


class Redaction(NamedTuple):
    """What is recorded of a message whose words were taken out.

    ``session_id`` is the session that it was asked of, ``at`` is when, in ms. ``compactions`` are
    those whose summaries were made of the message before, and may tell of it. ``purged`` tells
    whether a purge has written the file anew since, ``copies`` are the paths of the copies of the
    store that may hold the words still; on servers ``purged`` stays False.
    """

    session_id: str
    seq: int
    reason: str
    by: str | None
    at: int
    compactions: tuple[int, ...]
    purged: bool
    copies: tuple[str, ...] = ()


class Purge(NamedTuple):
    """Whether a purge was done, and why not; true if it was.

    ``removed`` and ``left`` are the copies that were removed, or were gone already, and those that
    were left, by path.
    """

    done: bool
    problem: str | None
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.done


class Copy(NamedTuple):
    """A copy of the store: where it is, when it was made (ms), how large it was (bytes).

    ``kind``: ``backup``, or ``upgrade`` for one made before an upgrade of the schema. ``number`` is
    its place in the store's list, None where an older or full store could not list it. ``size`` is
    None for one that was begun and never finished.
    """

    number: int | None
    path: str
    kind: str
    made_at: int
    size: int | None


class Removal(NamedTuple):
    """The copies that were removed, or were gone already, and those that were left, by path."""

    removed: tuple[str, ...]
    left: tuple[str, ...]


class Restored(NamedTuple):
    """Where a copy was put, its schema, and what came back with it.

    ``erased`` are the sessions that the store before it had erased: delete them again.
    ``redacted`` are the messages that it had redacted, as sessions and positions: redact them
    again.
    """

    path: str
    schema: str
    erased: tuple[str, ...]
    redacted: tuple[tuple[str, int], ...] = ()


class CacheInfo(NamedTuple):
    """What an open store keeps in memory of the views that it made, and of the ends of lines.

    ``hits`` views, and reads of the newest messages, went on from what was kept, ``misses`` were
    made anew. ``bytes`` are about what the ``entries`` take, never more than ``limit``.
    """

    hits: int
    misses: int
    bytes: int
    entries: int
    limit: int


class Finding(NamedTuple):
    """Something `verify` found wrong.

    ``check`` names the test, ``where`` the place, ``problem`` what is wrong.
    """

    check: str
    where: str
    problem: str
