"""The requests that were assembled last, for what the next one of their session changes."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from ..database import is_current, register_forkable, register_tree_cache
from ..errors import StoreError

if TYPE_CHECKING:
    from .layered import Hashed, Layered
    from .request import Context


class Requests:
    """The last request of each session that a store assembled: as hashes, but for the latest.

    The newest sessions only.
    """

    KEPT = 64

    def __init__(self) -> None:
        self._last: OrderedDict[str, Layered | Hashed] = OrderedDict()
        self.start_in_child()
        register_tree_cache(self)
        register_forkable(self)

    def start_in_child(self) -> None:
        """Begin anew in a forked child, where nobody gives back a lock that its parent holds."""
        self._lock = Lock()

    def is_busy_elsewhere(self) -> bool:
        """Tell whether another thread is at work on the requests."""
        return self._lock.locked()

    def compared(self, session_id: str, context: Context, since: int | None) -> Context:
        """Return a request with the one before, and remember it.

        It was read when things had been forgotten ``since`` times; by a writer, None.
        """
        with self._lock:
            before = self._last.pop(session_id, None)
            self._keep_hashes()
            self._last[session_id] = context.layered
            if not is_current(since):
                self._keep_hashes()
            while len(self._last) > self.KEPT:
                self._last.popitem(last=False)
        return context._replace(before=before)

    def forget(self, _: int) -> None:
        """Keep no words of any tree any more; hashes tell the next request as much."""
        with self._lock:
            self._keep_hashes()

    def _keep_hashes(self) -> None:
        """Keep no more than hashes of the latest; nothing of one that was read of damaged rows.

        Whoever looks into it is told; another session's request is not to fail for it.
        """
        from .layered import Hashed

        for name in [*self._last][-1:]:
            latest = self._last.pop(name)
            with suppress(StoreError):
                self._last[name] = Hashed(array("q", latest.hashes))
