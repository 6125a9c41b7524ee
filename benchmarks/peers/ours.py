"""This store."""

from __future__ import annotations

from pathlib import Path

from store import Policy, Store, StoredMessage

from ..workload import ROOT, Message
from .peer import SUMMARY, Peer

KEPT = 200
KEEP = Policy(
    keep_messages=KEPT, boundary="group", trigger_tokens=10**12, transcript_max_chars=2**31
)


class Ours(Peer):
    """The store as an app opens it, but for the durability, which is that of all sides."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._store = Store(path, durability="normal")
        self._forgetful = Store(path, durability="normal", cache_bytes=0)

    def plain(self, stored: list[StoredMessage]) -> list[Message]:
        """Take the messages out of their records."""
        return [each.message for each in stored]

    async def create(self, session: str, at: int = 0) -> None:
        """Create it with the project's folder, by which the rules know its files."""
        self._store.create_session(session, project_root=ROOT, now=at or None)

    async def append(self, session: str, messages: list[Message]) -> None:
        """Append."""
        self._store.append(session, messages)

    async def load(self, session: str) -> list[StoredMessage]:
        """Read the line."""
        return self._store.messages(session)

    async def newest(self, session: str, count: int) -> list[StoredMessage]:
        """Read its end, whatever of it was read before."""
        return self._forgetful.messages(session, -count)

    async def unseen(self, session: str) -> str:
        """Fork it: of a fork nothing is kept in memory."""
        return self._store.fork(session).id

    async def view(self, session: str, now: int) -> list[Message]:
        """Let the rules judge."""
        return self._store.view(session, now=now).messages

    async def hide(self, session: str, now: int) -> str:
        """Compact a fork, which the session itself knows nothing of."""
        fork = self._store.fork(session).id
        self._store.compact(fork, KEEP, lambda _: SUMMARY, now=now)
        return fork

    def kept(self, session: str) -> int:
        """Return how many messages stand behind the summary."""
        head = self._store.session(session).head
        (made,) = self._store.compactions(session)
        return head - (made.first_kept or 1) + 1

    async def behind(self, session: str, kept: int, now: int) -> list[Message]:  # noqa: ARG002
        """Ask for the view of the fork: where its summary ends is the store's own knowledge."""
        return self._store.view(session, KEEP, now=now).messages

    async def rewind(self, session: str, count: int) -> None:
        """Move the head back."""
        self._store.rewind(session, self._store.session(session).head - count)

    async def sessions(self, limit: int) -> list[str]:
        """List them."""
        return [each.id for each in self._store.sessions(limit=limit)]
