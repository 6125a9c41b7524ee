"""Results of erasing, redacting, copying and checking a store."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

FilePath: TypeAlias = str | os.PathLike[str]
"""A path as text or object."""
ProgressCallback = Callable[[int, int], object]
"""A function that is told the progress of long work: the amount done, and the whole."""


class Erasure(NamedTuple):
    """The result of a deletion.

    ``kept`` messages stay because lines of other sessions run through them.

    ``purged`` tells whether a purge has rewritten the file since, so that no freed byte is left in
    it; on servers it stays False, because the server does not tell which bytes it still holds.
    ``copies`` are the paths of copies of the store that may still hold the bytes. ``finished`` is
    False while unreachable rows wait to be erased: the next opening, deletion or purge goes on with
    them.
    """

    session_id: str
    messages: int
    kept: int
    purged: bool
    copies: tuple[str, ...] = ()
    finished: bool = True


class Pruned(NamedTuple):
    """The sessions that a prune erases, and what that frees.

    ``messages`` are erased, with ``bytes`` of words (UTF-8); ``kept_for_forks`` more stay, because
    lines of other sessions run through them. ``oldest`` and ``newest`` are the moments (ms) of the
    last activity of the session that was idle for longest, and of the one that was for shortest.
    """

    sessions: int
    messages: int
    bytes: int
    oldest: int | None
    newest: int | None
    kept_for_forks: int


class SizePart(NamedTuple):
    """A part of the bytes of a store: of a table, session, owner, source or month.

    ``messages`` are counted except for tables (None).
    """

    name: str | None
    bytes: int
    messages: int | None


class Size(NamedTuple):
    """The bytes that a store takes.

    ``used`` are those of tables and indexes, ``free`` those of pages that hold nothing any more,
    which a purge gives back. ``log`` is the write-ahead log, ``copies`` are the listed copies that
    are still there. ``search`` is the part of ``used`` that the search index takes. ``parts`` are
    the largest first, months in order.
    """

    used: int
    free: int
    log: int
    copies: int
    search: int
    parts: tuple[SizePart, ...]


class Health(NamedTuple):
    """The state of a store for a probe; true if it can be read and written and nothing is wrong.

    ``free_bytes`` are those of the disk of a file, ``log_bytes`` those of its write-ahead log.
    ``waiting`` tells whether a writer waits for its turn, ``behind`` whether the search index lacks
    messages. ``oldest_draft`` is the moment (ms) of the last text of the answer under way that was
    quiet for longest, ``last_backup`` that of the newest copy. ``problems`` are sentences.
    """

    reachable: bool = False
    writable: bool = False
    schema: str | None = None
    free_bytes: int | None = None
    log_bytes: int = 0
    waiting: bool = False
    behind: bool = False
    oldest_draft: int | None = None
    last_backup: int | None = None
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.reachable and self.writable and not self.problems


class Redaction(NamedTuple):
    """The record of a message whose words were removed.

    ``session_id`` is the session of the request, ``at`` is its time in ms. ``compactions`` are
    those whose summaries were made from the message before, and may repeat it. ``purged`` tells
    whether a purge has rewritten the file since, ``copies`` are the paths of copies of the store
    that may still hold the words; on servers ``purged`` stays False.
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
    """Whether a purge was done, and if not, why; true if it was done.

    ``removed`` are the copies that were removed or were already gone, ``left`` are those that were
    left, by path.
    """

    done: bool
    problem: str | None
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.done


class Copy(NamedTuple):
    """A copy of the store: its path, the time it was made (ms) and its size (bytes).

    ``kind``: ``backup``, or ``upgrade`` for a copy made before an upgrade of the schema. ``number``
    is its place in the store's list, None if an older or full store could not list it. ``size`` is
    None for a copy that was never finished.
    """

    number: int | None
    path: str
    kind: str
    made_at: int
    size: int | None


class Removal(NamedTuple):
    """The copies that were removed or were already gone, and those that were left, by path."""

    removed: tuple[str, ...]
    left: tuple[str, ...]


class Restored(NamedTuple):
    """The path of a restored copy, its schema, and the data that came back with it.

    ``erased`` are the sessions that the previous store had erased: delete them again. ``redacted``
    are the messages that it had redacted, as sessions and positions: redact them again.
    """

    path: str
    schema: str
    erased: tuple[str, ...]
    redacted: tuple[tuple[str, int], ...] = ()


class CacheInfo(NamedTuple):
    """Figures of the cache that an open store keeps: views, and the ends of lines.

    ``hits`` are views, and reads of the newest messages, that continued from the cache; ``misses``
    were computed anew. ``bytes`` is the approximate size of the ``entries``, never more than
    ``limit``.
    """

    hits: int
    misses: int
    bytes: int
    entries: int
    limit: int


class Finding(NamedTuple):
    """A fault found by `verify`.

    ``check`` names the test, ``where`` the place, ``problem`` the fault.
    """

    check: str
    where: str
    problem: str
