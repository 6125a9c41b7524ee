"""The cache of the last requests, which the next request of a session is compared with."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from ..database import is_mark_current, register_forkable, register_tree_cache
from ..errors import StoreError

if TYPE_CHECKING:
    from .layers import Hashed, Layered
    from .request import Context


class Requests:
    """The last request of each session that a store assembled, as hashes except the latest one.

    Only the newest sessions are kept.
    """

    KEPT = 64

    def __init__(self) -> None:
        self._last: OrderedDict[str, Layered | Hashed] = OrderedDict()
        self.start_in_child()
        register_tree_cache(self)
        register_forkable(self)

    def start_in_child(self) -> None:
        """Make a new lock in a forked child, where nobody releases one that its parent holds."""
        self._lock = Lock()

    def is_busy_elsewhere(self) -> bool:
        """Tell whether another thread holds the lock."""
        return self._lock.locked()

    def remember(self, session_id: str, context: Context, since: int | None) -> Context:
        """Return a request with the one before it, and remember it.

        ``since`` is the number of times the store had cleared its caches at the read; None for a
        writer.
        """
        with self._lock:
            before = self._last.pop(session_id, None)
            self._keep_hashes()
            self._last[session_id] = context.layered
            if not is_mark_current(since):
                self._keep_hashes()
            while len(self._last) > self.KEPT:
                self._last.popitem(last=False)
        return context._replace(before=before)

    def forget(self, _: object) -> None:
        """Drop the texts of all trees; hashes are enough to compare the next request."""
        with self._lock:
            self._keep_hashes()

    def _keep_hashes(self) -> None:
        """Keep only hashes of the latest request; nothing of one that was read from damaged rows.

        Its own reader gets the error; another session's request does not fail for it.
        """
        from .layers import Hashed

        for name in [*self._last][-1:]:
            latest = self._last.pop(name)
            with suppress(StoreError):
                self._last[name] = Hashed(array("q", latest.hashes))
