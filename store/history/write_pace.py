"""The pace of a long work that is done in short writes, with those of others between them.

A writer waits in line for the write before its own, so the longest write decides how long all
others take. While others wait, a slice of the work is only so long that it holds the line for
`HELD_SECONDS`, its commit included. A slice may take longer where it has waited longer, up to half
of that time, and it takes half as long as its commit at least: else the work would never end beside
many writers, or on a slow disk. What some slices have changed is folded into the file in a turn of
its own, or a writer pays for it with the checkpoint at the end of its commit, and all who wait for
that writer. A fold takes two flushes of the disk, whatever it folds, so it is not done after each
slice. After each turn the others go first, for as long as the turn took, unless it waited as long
for them. If nobody waits, the slices grow, and there is no pause.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection

from ..database import LOOK_SECONDS, Database, get_lease, has_waiting_writers
from ..errors import StoreError

HELD_SECONDS = 0.006
"""Seconds for which a slice may keep others waiting, as far as the disk allows it."""
FOLD_SECONDS = 0.015
"""Seconds of slices after which the log is folded in, in a turn that is about as short."""
GROWTH = 1.5
"""The factor by which slices grow while nobody waits."""


class WritePace:
    """The length of the slices of a work, in ``seconds`` without their commits.

    It changes with what the last one has cost others, up to ``longest``. On a server nobody waits
    for another one's tree, so slices only grow.
    """

    def __init__(self, database: Database, seconds: float, longest: float) -> None:
        self.seconds, self._longest = seconds, max(seconds, longest)
        self._database, self._unfolded = database, 0.0

    @contextmanager
    def writing(self, patience: float | None = None) -> Iterator[Connection]:
        """Give a connection in a write transaction for a slice; then let others write.

        The options are those of `Database.writing`.
        """
        waited = 0.0
        begun = time.monotonic()
        with self._database.writing(patience) as connection:
            yield connection
            waited = get_lease(connection).waited
        held = time.monotonic() - begun - waited
        self._unfolded += held
        if not self._is_waited_for():
            self.seconds = min(self._longest, GROWTH * self.seconds)
            return
        wanted = max(HELD_SECONDS, waited / 2)
        commit = held - self.seconds
        fitting = max(self.seconds * wanted / held, commit / 2)
        self.seconds = min(self._longest, fitting)
        if waited < held:
            self._let_others_write(held)
        if self._unfolded >= FOLD_SECONDS:
            self._unfolded = 0.0
            with suppress(StoreError):  # the slices are committed; a later commit folds them in
                self._let_others_write(self._database.fold_log(patience))

    def _is_waited_for(self) -> bool:
        path = self._database.path
        return path is not None and has_waiting_writers(path)

    def _let_others_write(self, longest: float) -> None:
        """Wait until no writer waits, for so many seconds at most."""
        ends = time.monotonic() + longest
        while self._is_waited_for() and time.monotonic() < ends:
            time.sleep(LOOK_SECONDS)
