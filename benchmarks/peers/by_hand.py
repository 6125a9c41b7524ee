"""Hand-written ``sqlite3``: the rival of `benchmarks.rivals`."""

from __future__ import annotations

from pathlib import Path

from ..rivals import Raw
from ..workload import ROOT, Message
from .peer import Peer


class ByHand(Peer):
    """A few normalized tables, and no more than the job needs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._raw = Raw(path, "NORMAL")

    async def create(self, session: str, at: int = 0) -> None:
        """Insert its row."""
        self._raw.create_sessions([(session, None, ROOT, None, at, at)])

    async def append(self, session: str, messages: list[Message]) -> None:
        """Insert rows, in one transaction."""
        self._raw.append(session, messages)

    async def load(self, session: str) -> list[Message]:
        """Scan the session's range of both tables."""
        return self._raw.messages(session)

    async def newest(self, session: str, count: int) -> list[Message]:
        """Scan the end of it."""
        return self._raw.newest(session, count)

    async def rewind(self, session: str, count: int) -> None:
        """Delete the rows, because there is nothing else that they could be."""
        self._raw.rewind(session, self._raw.append(session, []) - count)

    async def sessions(self, limit: int) -> list[str]:
        """Read the index of moments backwards."""
        return [row[0] for row in self._raw.sessions(limit)]
