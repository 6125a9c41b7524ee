"""The requests that were assembled last, for what the next one of their session changes."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

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

    def compared(self, session_id: str, context: Context) -> Context:
        """Return a request with the one before, and remember it."""
        before = self._last.pop(session_id, None)
        for name in [*self._last][-1:]:
            self._keep_hashes(name)
        self._last[session_id] = context.layered
        while len(self._last) > self.KEPT:
            self._last.popitem(last=False)
        return context._replace(before=before)

    def _keep_hashes(self, name: str) -> None:
        """Keep no more than hashes of a request; nothing of one that was read of damaged rows.

        Whoever looks into it is told; another session's request is not to fail for it.
        """
        from .layered import Hashed

        latest = self._last.pop(name)
        with suppress(StoreError):
            self._last[name] = Hashed(latest.hashes)
